import type { Header } from '../http/headers.js'

/** Bytes of names and values that are stored of an answer, as many as of its body: no web framework's answer has more. */
export const MAX_HEADER_BYTES = 4096
/** Headers whose values are credentials for the target. */
const SECRET = /^(?:set-cookie2?|authorization|authentication-info|proxy-.*)$/i
/** In place of such a value: that it was there explains a session; what it was would let others take the session over. */
const NOT_KEPT = '(not stored)'

/** The headers of a target's answer that are stored with an attempt: the first ones, without credentials. */
export function answerHeaders(headers: readonly Header[]): readonly Header[] {
  let room = MAX_HEADER_BYTES
  const kept: Header[] = []
  for (const [name, value] of headers) {
    const shown = SECRET.test(name) ? NOT_KEPT : value
    room -= name.length + shown.length
    if (room < 0) break
    kept.push([name, shown])
  }
  return kept
}
