import type { Header } from '../journal/delivery.js'

/** A text is read to its end up to this many bytes, so that its connection can be used again; past it, it is cut off. */
export const MAX_READ = 256 * 1024

/** What came back. */
export interface Posted {
  readonly status: number
  /** A header's value, its name in lower case; of several lines, all of them with commas between. */
  readonly header: (name: string) => string | undefined
  /** How the answer's text begins. */
  readonly start: Uint8Array
}

export interface PosterOptions {
  /** Milliseconds for all of a request, from connecting to the end of the answer. */
  readonly limit: number
}

export interface Poster extends AsyncDisposable {
  /**
   * Posts once, byte for byte. The status decides as soon as it is there: what then goes wrong with the answer's text
   * changes nothing. Redirects are not followed.
   * @throws when there is no answer: a `TimeoutError` at the limit, the signal's reason when it aborts, else what went wrong with
   * the connection, as {@link describeConnectionError} tells it.
   */
  post(headers: readonly Header[], body: Uint8Array, signal: AbortSignal): Promise<Posted>
}
