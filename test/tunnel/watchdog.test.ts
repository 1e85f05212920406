import { describe, expect, it } from 'vitest'
import { createWatchdog, pause } from '../../src/tunnel/watchdog.js'

/** A watchdog on a manual clock, and the reason that it reports. */
function setUp() {
  let now = 1_000_000
  let dead = (_reason: string): void => {}
  const died = new Promise<string>((resolve) => (dead = resolve))
  const watchdog = createWatchdog({ clock: () => now, tick: 1, onDead: dead })
  return { watchdog, died, move: (ms: number) => void (now += ms) }
}

describe('the watchdog', () => {
  it('reports what did not happen', async () => {
    const { watchdog, died, move } = setUp()
    watchdog.expect(5000, 'nothing came')
    move(5000)
    expect(await died).toBe('nothing came')
  })

  it('uses the latest deadline', async () => {
    const { watchdog, died, move } = setUp()
    watchdog.expect(5000, 'the first')
    move(4000)
    watchdog.expect(5000, 'the second')
    move(5000)
    expect(await died).toBe('the second')
  })

  it('treats a clock that jumps ahead as a machine that slept', async () => {
    const { watchdog, died, move } = setUp()
    watchdog.expect(3_600_000, 'nothing came')
    move(10_002)
    expect(await died).toBe('this machine slept')
  })

  it('does not wait longer when the clock is set back', async () => {
    const { watchdog, died, move } = setUp()
    watchdog.expect(5000, 'nothing came')
    move(-3_600_000)
    // It checks once a millisecond; the second pause cannot end before the first check.
    for (let i = 0; i < 2; i++)
      await pause(2, { clock: Date.now, tick: 1, signal: new AbortController().signal })
    move(5000)
    expect(await died).toBe('nothing came')
  })
})

describe('a pause', () => {
  it('ends at once when it is aborted, even before it began', async () => {
    const stop = new AbortController()
    const long = pause(3_600_000, { clock: Date.now, tick: 1000, signal: stop.signal })
    stop.abort()
    await long
    await pause(3_600_000, { clock: Date.now, tick: 1000, signal: stop.signal })
    expect(stop.signal.aborted).toBe(true)
  })

  it('ends when the machine has slept', async () => {
    let now = 0
    const { signal } = new AbortController()
    const waiting = pause(60_000, { clock: () => now, tick: 1, signal })
    now = 20_000
    await waiting
    expect(now).toBeLessThan(60_000)
  })
})
