/**
 * Calls `work` with a signal that aborts after `ms` milliseconds, or with `signal`. No timer and no listener is left
 * when it has ended, which `AbortSignal.timeout` and `AbortSignal.any` do not promise.
 */
export async function withTimeLimit<T>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limited = new AbortController()
  const abort = (): void => limited.abort(signal.reason)
  const timer = setTimeout(() => limited.abort(new DOMException('Timed out', 'TimeoutError')), ms)
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  try {
    return await work(limited.signal)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}
