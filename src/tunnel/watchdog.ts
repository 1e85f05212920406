import type { Clock } from '../base/time.js'

/** Looks whether what is expected has come. */
export interface Watchdog extends Disposable {
  /** From now on something must come within `ms` milliseconds, which it does by calling this again. */
  expect(ms: number, otherwise: string): void
}

export interface WatchdogOptions {
  readonly clock: Clock
  /** Milliseconds between two looks. */
  readonly tick: number
  /** Called once, with what was said `otherwise`, or that the machine slept. */
  readonly onDead: (why: string) => void
}

export interface PauseOptions extends Pick<WatchdogOptions, 'clock' | 'tick'> {
  readonly signal: AbortSignal
}

/** A wall clock that is this much later than it should be, in milliseconds, has gone on while the machine slept. */
const SLEPT_MS = 10_000

/**
 * Timers stand still while a machine sleeps, and go on afterwards as if nothing had been; the other side has long since
 * given the connection up. So the wall clock is looked at, often enough to see it jump.
 */
export function createWatchdog({ clock, tick, onDead }: WatchdogOptions): Watchdog {
  let looked = clock()
  let until = Infinity
  let why = ''
  const timer = setInterval(() => {
    const now = clock()
    const passed = now - looked
    looked = now
    // Set back, it would make what is expected seem far off.
    if (passed < 0) until += passed
    const slept = passed > tick + SLEPT_MS
    if (!slept && now < until) return
    clearInterval(timer)
    onDead(slept ? 'this machine slept' : why)
  }, tick)
  return {
    expect(ms, otherwise) {
      until = clock() + ms
      why = otherwise
    },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

/** A wait that ends early when the machine has slept, or `signal` aborts. */
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
