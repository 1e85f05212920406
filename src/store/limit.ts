import { RelayError } from '../base/errors.js'

/** How long a write may take, in milliseconds: code hosts wait 10 s for an answer, of which this leaves the larger part. */
export const WRITE_LIMIT = 4000

/**
 * Waits for a write, but no longer than {@link WRITE_LIMIT}. `isLate` then becomes true, and what comes of the write is
 * ignored.
 * @throws RelayError `storage` when it took longer; else as the write does.
 */
export async function withinLimit<T>(write: (isLate: () => boolean) => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let late = false
    const timer = setTimeout(() => {
      late = true
      reject(new RelayError('storage', `The store did not finish a write within ${WRITE_LIMIT / 1000} s`))
    }, WRITE_LIMIT)
    write(() => late)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}
