import { CREDENTIALS, type Header } from '../http/headers.js'
export { type HeaderLines, indexHeaders, only } from '../http/headers.js'
import { EDITED_HEADER, isEditedHeader } from '../journal/types.js'

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
