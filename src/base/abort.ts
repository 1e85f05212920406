import { setTimeout as wait } from 'node:timers/promises'

/** The last parameter of everything that waits. */
export interface Cancellable {
  readonly signal?: AbortSignal | undefined
}

/** A signal that aborts with a `TimeoutError` after `ms` milliseconds, or with the caller's own reason before. */
export function deadline(ms: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(ms)
  return signal ? AbortSignal.any([signal, limit]) : limit
}

/**
 * Resolves after `ms` milliseconds.
 * @throws AbortError, its `cause` the signal's reason, when `signal` aborts first.
 */
export async function sleep(ms: number, { signal }: Cancellable = {}): Promise<void> {
  await wait(ms, undefined, signal ? { signal } : {})
}
