import { RelayError } from '../base/errors.js'

/** The statuses that `--expect` allows. */
export interface Expectation {
  /** As written: `2xx`, `401`. */
  readonly text: string
  /** Whether this status is allowed; null means that there was no answer. */
  fits(status: number | null): boolean
}

/** @throws RelayError `usage` */
export function parseExpectation(text: string): Expectation {
  if (!/^[1-5](?:xx|\d\d)$/.test(text))
    throw new RelayError('usage', '--expect: must be a status such as 401, or a class such as 2xx')
  const wanted = text.replace('xx', '')
  return { text, fits: (status) => status !== null && String(status).startsWith(wanted) }
}
