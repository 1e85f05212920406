import { RelayError } from '../base/errors.js'
import type { Clock } from '../base/time.js'
import {
  type Expectation,
  type Expiry,
  type Json,
  MAX_KEY_BYTES,
  type Operation,
  type Store,
} from './contract.js'
import type { Sql, Step } from './sql.js'

type Row = { readonly key: string; readonly value: string }

const LIVE = '(expires_at IS NULL OR expires_at > ?)'
/** Comes after everything that a key may have behind a prefix: the last character there is, to the length of a key. */
const LAST_SUFFIX = '\u{10ffff}'.repeat(MAX_KEY_BYTES / 4)
/** Records that one sweep removes in a transaction. */
const SWEEP = 500

/** The key-value store, in the table `kv` of the profile's database. */
export function createStore(sql: Sql, clock: Clock): Store {
  const write = async (
    operations: readonly Operation[],
    expected: readonly Expectation[] = [],
  ): Promise<boolean> => {
    const checks = expected.map((expectation) => expectStep(expectation, clock()))
    return (await sql.transaction([...checks, ...operations.map(stepOf)])) !== undefined
  }
  /** The value that was there. */
  const remove = async (key: string): Promise<Json | undefined> => {
    const values = [checkKey(key), clock()]
    const rows = await sql.transaction([
      { sql: `DELETE FROM kv WHERE key = ? AND ${LIVE} RETURNING value`, values },
    ])
    const [row] = rows?.[0] ?? []
    return row && parse(String(row['value']))
  }

  return {
    async get(key) {
      const values = [checkKey(key), clock()]
      const [row] = await sql.query<Row>(`SELECT value FROM kv WHERE key = ? AND ${LIVE}`, values)
      return row && parse(row.value)
    },
    async put(key, value, expiry) {
      await write([{ type: 'put', key, value, ...expiry }])
    },
    putIfAbsent: async (key, value, expiry) =>
      write([{ type: 'put', key, value, ...expiry }], [{ key, value: undefined }]),
    take: remove,
    delete: async (key) => (await remove(key)) !== undefined,
    async list(prefix) {
      const rows = await sql.query<Row>(
        `SELECT key FROM kv WHERE key BETWEEN ? AND ? AND ${LIVE} ORDER BY key`,
        [checkPrefix(prefix), prefix + LAST_SUFFIX, clock()],
      )
      return rows.map(({ key }) => key)
    },
    write,
    async sweep() {
      for (let swept = 0; ;) {
        const rows = await sql.transaction([
          {
            sql: `DELETE FROM kv WHERE key IN (SELECT key FROM kv WHERE expires_at <= ? LIMIT ${SWEEP}) RETURNING key`,
            values: [clock()],
          },
        ])
        const count = rows?.[0]?.length ?? 0
        swept += count
        if (count < SWEEP) return swept
      }
    },
    [Symbol.asyncDispose]: () => sql[Symbol.asyncDispose](),
  }
}

/** The step that is required to find exactly this value under `key` at `now`; see {@link Step.required}. */
export function expectStep({ key, value, or = value }: Expectation, now: number): Step {
  const record = `SELECT 1 FROM kv WHERE key = ? AND ${LIVE}`
  const values = [checkKey(key), now]
  return value === undefined
    ? { sql: `SELECT 1 WHERE NOT EXISTS (${record})`, values, required: true }
    : {
        sql: `${record} AND value IN (?, ?)`,
        values: [...values, JSON.stringify(value), JSON.stringify(or)],
        required: true,
      }
}

function stepOf(operation: Operation): Step {
  const key = checkKey(operation.key)
  if (operation.type === 'delete') return { sql: 'DELETE FROM kv WHERE key = ?', values: [key] }
  return {
    sql: `INSERT INTO kv (key, value, expires_at) VALUES (?, ?, ?)
      ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`,
    values: [key, JSON.stringify(operation.value), expiryOf(operation)],
  }
}

/** An instant that is no number has passed: a record must not stay because of a wrong computation. */
function expiryOf({ expiresAt = Infinity }: Expiry): number | null {
  if (expiresAt === Infinity) return null
  return Number.isNaN(expiresAt) ? -Infinity : expiresAt
}

function parse(text: string): Json {
  const value: Json = JSON.parse(text)
  return value
}

/** @throws RelayError `bad_request` when it is empty, longer than {@link MAX_KEY_BYTES}, or has NUL or half a surrogate pair. */
export function checkKey(key: string): string {
  if (key === '') throw new RelayError('bad_request', 'Invalid key: empty')
  return checkPrefix(key)
}

/** Like {@link checkKey}, for the beginning of keys: it may be empty. @throws RelayError `bad_request` */
export function checkPrefix(prefix: string): string {
  const bytes = Buffer.from(prefix)
  // UTF-8 has U+FFFD for half a pair: two keys would become one.
  if (bytes.toString() !== prefix) throw new RelayError('bad_request', 'Invalid key: not well-formed Unicode')
  // Columns of text hold none.
  if (bytes.includes(0)) throw new RelayError('bad_request', 'Invalid key: NUL')
  if (bytes.length > MAX_KEY_BYTES)
    throw new RelayError('bad_request', `Invalid key: longer than ${MAX_KEY_BYTES} bytes`)
  return prefix
}
