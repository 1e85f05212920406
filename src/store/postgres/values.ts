import type { SqlValue } from '../sql.js'

/** What the driver sends: text, or bytes in PostgreSQL's binary form. */
export type Parameter = string | Buffer | null

/** Columns of text hold no NUL. What is half a surrogate pair becomes U+FFFD when it is encoded. */
export function toParameter(value: SqlValue): Parameter {
  if (value === null) return null
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}

/** The types that relay's columns and expressions have, by their number in `pg_type.dat`. All others are text. */
const READERS: Readonly<Record<number, (text: string) => SqlValue>> = {
  16: (text) => (text === 't' ? 1 : 0),
  17: (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex')),
  20: Number,
  21: Number,
  23: Number,
  701: Number,
  1700: Number,
}

const asText = (text: string): SqlValue => text

/** Reads values as the SQL contract gives them: whole numbers and truth values (0 or 1) as numbers, bytes in memory of their own. */
export function readerOf(type: number): (text: string) => SqlValue {
  return READERS[type] ?? asText
}
