import { onAbort } from '../base/abort.js'

/** Why work is given up that is not done in time: a `TimeoutError`. */
export function timedOut(): DOMException {
  return new DOMException('Timed out', 'TimeoutError')
}

export function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError'
}

/**
 * Calls `giveUp` once, with why: after `ms` milliseconds a `TimeoutError`, or the signal's reason when it aborts; at once if it
 * has. Unless the function it returns is called before, which leaves no timer and no listener.
 */
export function limitTo(ms: number, signal: AbortSignal, giveUp: (reason: unknown) => void): () => void {
  const end = (): void => {
    clearTimeout(timer)
    ignore()
  }
  const timer = setTimeout(() => {
    ignore()
    giveUp(timedOut())
  }, ms)
  const ignore = onAbort(signal, () => {
    clearTimeout(timer)
    giveUp(signal.reason)
  })
  return end
}

/** Calls `work` with a signal that aborts in these cases. */
export async function withTimeLimit<T>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limited = new AbortController()
  const end = limitTo(ms, signal, (reason) => limited.abort(reason))
  try {
    return await work(limited.signal)
  } finally {
    end()
  }
}
