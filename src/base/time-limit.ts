import { onAbort } from './abort.js'

/** Whether this is the reason of a signal that aborted at its time limit. */
export function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError'
}

/**
 * Runs `work` with a signal that aborts with a `TimeoutError` after `ms` milliseconds, or earlier with the reason of
 * `signal`. Leaves no timer and no listener behind, unlike `AbortSignal.timeout`.
 */
export async function withTimeLimit<T>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limited = new AbortController()
  const timer = setTimeout(() => limited.abort(new DOMException('Timed out', 'TimeoutError')), ms)
  const ignore = onAbort(signal, () => limited.abort(signal.reason))
  try {
    return await work(limited.signal)
  } finally {
    clearTimeout(timer)
    ignore()
  }
}

/** The result of `work`, which cannot be cancelled: after `ms` milliseconds it is ignored. @throws TimeoutError then */
export async function inTime<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DOMException('Timed out', 'TimeoutError')), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
