import { CREDENTIALS, type Header } from '../http/headers.js'
import { EDITED_HEADER, isEditedHeader } from '../journal/types.js'

/** All values of each header, by lower-case name. */
export type HeaderLines = ReadonlyMap<string, readonly string[]>

/** Indexes the headers once, so that several look-ups stay cheap. */
export function indexHeaders(headers: readonly Header[]): HeaderLines {
  const lines = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    const values = lines.get(key)
    if (values) values.push(value)
    else lines.set(key, [value])
  }
  return lines
}

/** The header's value if it occurs exactly once. Of two values it is unclear which one counts. */
export function only(lines: HeaderLines, name: string): string | undefined {
  const values = lines.get(name)
  return values?.length === 1 ? values[0] : undefined
}

/** The headers without `Authorization`, `Cookie` and `Proxy-*`, which hold credentials. */
export function withoutCredentials(headers: readonly Header[]): readonly Header[] {
  return headers.filter(([name]) => !CREDENTIALS.test(name))
}

/**
 * The headers that are stored with a delivery: those without credentials and, for one that a user edited, the number of the entry
 * that it is a copy of. A request from outside cannot claim that: the header is not taken over from it.
 */
export function storedHeaders(headers: readonly Header[], editedFrom: number | undefined): readonly Header[] {
  const kept = withoutCredentials(headers).filter(([name]) => !isEditedHeader(name))
  return editedFrom === undefined ? kept : [...kept, [EDITED_HEADER, String(editedFrom)]]
}
