import { RelayError } from '../base/errors.js'

/** How long a write may take, in milliseconds: code hosts wait 10 s for an answer, of which this leaves the larger part. */
export const WRITE_LIMIT = 4000

/**
 * Waits for a write, but no longer than {@link WRITE_LIMIT}. `signal` then aborts, and what becomes of the write is ignored.
 * @throws RelayError `storage` when it took longer; else as the write does.
 */
export async function withinLimit<T>(write: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  return new Promise<T>((resolve, reject) => {
    const timer = setTimeout(() => {
      controller.abort()
      reject(new RelayError('storage', `The store did not finish a write within ${WRITE_LIMIT / 1000} s`))
    }, WRITE_LIMIT)
    write(controller.signal)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}
