import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'

/** The last parameter of every function that waits. */
export interface Cancellable {
  readonly signal?: AbortSignal | undefined
}

/** Keeps time-outs alive: Node 20's `AbortSignal.any` holds its sources weakly, and a collected one never fires (measured). */
const timeouts = new WeakMap<AbortSignal, AbortSignal>()

/** A signal that aborts with a `TimeoutError` after `ms` milliseconds, or earlier with the reason of `signal`. */
export function deadline(ms: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(ms)
  if (!signal) return limit
  const either = AbortSignal.any([signal, limit])
  timeouts.set(either, limit)
  return either
}

/**
 * Resolves after `ms` milliseconds.
 * @throws AbortError, its `cause` the signal's reason, when `signal` aborts first.
 */
export async function sleep(ms: number, { signal }: Cancellable = {}): Promise<void> {
  await wait(ms, undefined, signal ? { signal } : {})
}

/** Resolves once the signal aborts, at once if it has. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

/** The functions to call when a signal aborts. */
const callbacks = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls `run` when `signal` aborts, or at once if it has. Calling the returned function cancels that. Each signal gets one
 * listener in total: adding and removing one per request takes longer than writing the request.
 */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  if (signal.aborted) {
    run()
    return () => {}
  }
  const runs = callbacks.get(signal) ?? listen(signal)
  runs.add(run)
  return () => void runs.delete(run)
}

function listen(signal: AbortSignal): Set<() => void> {
  const runs = new Set<() => void>()
  callbacks.set(signal, runs)
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
