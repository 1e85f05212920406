import { RelayError } from '../base/errors.js'

/** Enough for any e-mail address (254), and short enough for a key that also holds a hash. */
const MAX_BYTES = 256

/**
 * The application's name for a user: 1–256 bytes of UTF-8 without control characters, white space or `/`, and neither `.`
 * nor `..`, so that it can stand in a key, in a path and on a line.
 * @throws RelayError `bad_request`
 */
export function parseUserId(text: string): string {
  const valid =
    /^[^\p{Cc}\p{Cs}\p{White_Space}\s/]+$/u.test(text) &&
    text !== '.' &&
    text !== '..' &&
    Buffer.byteLength(text) <= MAX_BYTES
  if (!valid) throw new RelayError('bad_request', 'Invalid userId')
  return text
}
