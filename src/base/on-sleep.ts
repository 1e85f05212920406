import { type Clock, systemClock } from './time.js'

interface SleepOptions {
  readonly clock?: Clock
  /** Milliseconds between two looks at the clock. Default: 1 s. */
  readonly every?: number
  /** Milliseconds. Default: 10 s, since the timers of a busy process come seconds late. */
  readonly gap?: number
}

/**
 * Calls `listener` when the machine, or this process, has slept: the clock has jumped by more than `gap` between two looks at it.
 * Timers stand still meanwhile. Returns a function that ends it. Keeps no process running.
 */
export function onSleep(listener: () => void, options: SleepOptions = {}): () => void {
  const { clock = systemClock, every = 1000, gap = 10_000 } = options
  let before = clock()
  const timer = setInterval(() => {
    const passed = clock() - before
    before += passed
    if (passed > every + gap) listener()
  }, every).unref()
  return () => clearInterval(timer)
}
