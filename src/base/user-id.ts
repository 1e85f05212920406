import { RelayError } from './errors.js'

/** Room for any e-mail address (254), and short enough for a store key that also has a hash. Bytes. */
const MAX_USER_ID = 256

/**
 * Parses the application's name for a user: 1–256 bytes of UTF-8 without control characters, white space or `/`, and neither `.` nor `..`.
 * It is then safe in a store key, a path and a line of text.
 * @throws RelayError `bad_request`
 */
export function parseUserId(text: string): string {
  const valid =
    /^[^\p{Cc}\p{Cs}\p{White_Space}\s/]+$/u.test(text) &&
    text !== '.' &&
    text !== '..' &&
    Buffer.byteLength(text) <= MAX_USER_ID
  if (!valid) throw new RelayError('bad_request', 'Invalid userId')
  return text
}
