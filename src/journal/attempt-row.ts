import { RelayError } from '../base/errors.js'
import { type Attempt, MAX_ANSWER, MAX_ERROR } from './hand-on.js'

/** Ends the JSON, which has none of its own. */
const LINE_FEED = 10

/** How an attempt is kept: a line of JSON, and after it the answer's bytes. Part of the file format. */
export function encodeAttempt({ answer, error, ...attempt }: Attempt): Uint8Array {
  const json = JSON.stringify({ v: 1, ...attempt, error: error && error.slice(0, MAX_ERROR) })
  return Buffer.concat([Buffer.from(`${json}\n`), answer.subarray(0, MAX_ANSWER)])
}

/** @throws RelayError `storage` for an attempt of a later format. */
export function decodeAttempt(row: Uint8Array): Attempt {
  const end = row.indexOf(LINE_FEED)
  const { v, ...attempt }: Omit<Attempt, 'answer'> & { v: number } = JSON.parse(
    new TextDecoder().decode(row.subarray(0, end)),
  )
  if (v !== 1) throw new RelayError('storage', 'An attempt was written by a newer version of relay')
  return { ...attempt, answer: new Uint8Array(row.subarray(end + 1)) }
}
