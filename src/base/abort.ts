import { setTimeout as wait } from 'node:timers/promises'

/** The last parameter of everything that waits. */
export interface Cancellable {
  readonly signal?: AbortSignal | undefined
}

/** Node 20's `AbortSignal.any` holds its sources weakly, and a time-out that was collected never fires (measured). */
const held = new WeakMap<AbortSignal, AbortSignal>()

/** A signal that aborts with a `TimeoutError` after `ms` milliseconds, or with the caller's own reason before. */
export function deadline(ms: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(ms)
  if (!signal) return limit
  const either = AbortSignal.any([signal, limit])
  held.set(either, limit)
  return either
}

/**
 * Resolves after `ms` milliseconds.
 * @throws AbortError, its `cause` the signal's reason, when `signal` aborts first.
 */
export async function sleep(ms: number, { signal }: Cancellable = {}): Promise<void> {
  await wait(ms, undefined, signal ? { signal } : {})
}

/** Of each signal, what is to be called when it aborts. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls `run` when `signal` aborts, at once if it has, unless the function it returns is called before. A signal gets one
 * listener in all: to add one and remove it again for each request takes longer than to write the request.
 */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  if (signal.aborted) {
    run()
    return () => {}
  }
  const runs = waiting.get(signal) ?? listen(signal)
  runs.add(run)
  return () => void runs.delete(run)
}

function listen(signal: AbortSignal): Set<() => void> {
  const runs = new Set<() => void>()
  waiting.set(signal, runs)
  signal.addEventListener(
    'abort',
    () => {
      for (const run of runs) run()
      runs.clear()
    },
    { once: true },
  )
  return runs
}
