import type { Clock } from '../base/time.js'

/** Reports when an expected event does not happen in time. */
export interface Watchdog extends Disposable {
  /** Must be called again within `ms` milliseconds. Otherwise `onDead` receives `reason`. */
  expect(ms: number, reason: string): void
}

export interface WatchdogOptions {
  readonly clock: Clock
  /** Milliseconds between two checks. */
  readonly tick: number
  /** Called once, with the reason given to `expect`, or that the machine slept. */
  readonly onDead: (reason: string) => void
}

export interface PauseOptions extends Pick<WatchdogOptions, 'clock' | 'tick'> {
  readonly signal: AbortSignal
}

/** Milliseconds. If the wall clock jumps ahead by more than this between two checks, the machine slept. */
const SLEPT_MS = 10_000

/**
 * Checks the wall clock often enough to see it jump. Timers stand still while a machine sleeps and continue afterwards,
 * but by then the server has closed the connection.
 */
export function createWatchdog({ clock, tick, onDead }: WatchdogOptions): Watchdog {
  let checked = clock()
  let until = Infinity
  let expected = ''
  const timer = setInterval(() => {
    const now = clock()
    const passed = now - checked
    checked = now
    // If the clock is set back, the deadline moves with it.
    if (passed < 0) until += passed
    const slept = passed > tick + SLEPT_MS
    if (!slept && now < until) return
    clearInterval(timer)
    onDead(slept ? 'this machine slept' : expected)
  }, tick)
  return {
    expect(ms, reason) {
      until = clock() + ms
      expected = reason
    },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

/** Waits `ms` milliseconds. Ends early if the machine slept or `signal` aborts. */
export async function pause(ms: number, { clock, tick, signal }: PauseOptions): Promise<void> {
  await new Promise<void>((resolve) => {
    const watchdog = createWatchdog({ clock, tick: Math.min(tick, ms), onDead: () => done() })
    const done = (): void => {
      watchdog[Symbol.dispose]()
      signal.removeEventListener('abort', done)
      resolve()
    }
    watchdog.expect(ms, '')
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
}
