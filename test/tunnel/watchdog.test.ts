import { describe, expect, it } from 'vitest'
import { createWatchdog, pause } from '../../src/tunnel/watchdog.js'

/** A watchdog on a clock that is moved by hand, with the next thing it says. */
function watched() {
  let now = 1_000_000
  let dead = (_why: string): void => {}
  const died = new Promise<string>((resolve) => (dead = resolve))
  const watchdog = createWatchdog({ clock: () => now, tick: 1, onDead: dead })
  return { watchdog, died, move: (ms: number) => void (now += ms) }
}

describe('the watchdog', () => {
  it('says what has not come', async () => {
    const { watchdog, died, move } = watched()
    watchdog.expect(5000, 'nothing came')
    move(5000)
    expect(await died).toBe('nothing came')
  })

  it('waits for as long as it was last told', async () => {
    const { watchdog, died, move } = watched()
    watchdog.expect(5000, 'the first')
    move(4000)
    watchdog.expect(5000, 'the second')
    move(5000)
    expect(await died).toBe('the second')
  })

  it('takes a clock that jumps for a machine that slept', async () => {
    const { watchdog, died, move } = watched()
    watchdog.expect(3_600_000, 'nothing came')
    move(10_002)
    expect(await died).toBe('this machine slept')
  })

  it('waits no longer when the clock is set back', async () => {
    const { watchdog, died, move } = watched()
    watchdog.expect(5000, 'nothing came')
    move(-3_600_000)
    // It looks once a millisecond; the second pause cannot end before the first look.
    for (let i = 0; i < 2; i++)
      await pause(2, { clock: Date.now, tick: 1, signal: new AbortController().signal })
    move(5000)
    expect(await died).toBe('nothing came')
  })
})

describe('a pause', () => {
  it('ends at once when it is cut off, also before it began', async () => {
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
