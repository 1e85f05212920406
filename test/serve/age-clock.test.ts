import { describe, expect, it } from 'vitest'
import { openAgeClock } from '../../src/serve/age-clock.js'
import { openDatabase } from '../../src/store/open.js'

const NOW = Date.parse('2026-11-20T10:00:00Z')
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A profile's age clock, with clocks that go as the test says. */
async function rig() {
  const { store } = await openDatabase({ kind: 'memory', folder: '' })
  let wall = NOW
  let elapsed = 1000
  const start = () => openAgeClock({ store, clock: () => wall, elapsed: () => elapsed })
  let ages = await start()
  return {
    store,
    /** By how much ages are behind the wall clock. */
    behind: () => wall - ages.now(),
    /** Sets the wall clock, which is noticed at once. */
    set: (ms: number): void => {
      wall += ms
      ages.now()
    },
    /** Lets relay run, and look at the time every minute. */
    run: (ms: number): void => {
      for (let ran = 0; ran < ms; ran += MINUTE) {
        wall += MINUTE
        elapsed += MINUTE
        ages.now()
      }
    },
    /** What happens when it is ended, and started again after so long. */
    restart: async (off: number, { saves = true } = {}): Promise<void> => {
      if (saves) await ages.save()
      wall += off
      elapsed = 5
      ages = await start()
    },
  }
}

describe('the clock of ages', () => {
  it('is the wall clock while that goes as time does, and follows small corrections', async () => {
    const { behind, set, run } = await rig()
    expect(behind()).toBe(0)
    run(HOUR)
    set(59_000)
    expect(behind()).toBe(0)
    set(-59_000)
    expect(behind()).toBe(0)
    for (let i = 0; i < 200; i++) {
      set(1000)
      run(MINUTE)
    }
    expect(behind()).toBe(0)
  })

  it('does not follow a jump ahead until relay has run for 24 hours since', async () => {
    const { behind, set, run } = await rig()
    set(DAY)
    expect(behind()).toBe(DAY)
    run(DAY - MINUTE)
    expect(behind()).toBe(DAY)
    run(MINUTE)
    expect(behind()).toBe(0)
  })

  it('counts each jump for itself', async () => {
    const { behind, set, run } = await rig()
    set(8 * HOUR)
    run(16 * HOUR)
    set(8 * HOUR)
    expect(behind()).toBe(16 * HOUR)
    run(8 * HOUR)
    expect(behind()).toBe(8 * HOUR)
    run(16 * HOUR)
    expect(behind()).toBe(0)
  })

  it('follows a jump back at once, which first takes back those ahead', async () => {
    const { behind, set, run } = await rig()
    set(-DAY)
    expect(behind()).toBe(0)
    set(DAY)
    run(HOUR)
    set(2 * HOUR)
    run(HOUR)
    expect(behind()).toBe(DAY + 2 * HOUR)
    set(-3 * HOUR)
    expect(behind()).toBe(DAY - HOUR)
    set(-2 * DAY)
    expect(behind()).toBe(0)
  })

  it('continues after a restart, and counts the time between as a jump ahead', async () => {
    const { behind, set, run, restart } = await rig()
    set(DAY)
    run(20 * HOUR)
    await restart(2 * HOUR)
    expect(behind()).toBe(DAY + 2 * HOUR)
    run(4 * HOUR)
    expect(behind()).toBe(2 * HOUR)
    await restart(1000)
    run(20 * HOUR)
    expect(behind()).toBe(0)
    await restart(-DAY)
    expect(behind()).toBe(0)
  })

  it('takes what it could not save for time in which relay did not run', async () => {
    const { behind, run, restart } = await rig()
    await restart(0)
    run(HOUR)
    await restart(HOUR, { saves: false })
    expect(behind()).toBe(2 * HOUR)
  })

  it.each([[null], [{ v: 2, at: NOW, jumps: [] }], [{ v: 1, at: NOW, jumps: [{ ms: 'x', left: 1 }] }]])(
    'begins again where %j was saved',
    async (state) => {
      const { store, behind, restart } = await rig()
      await store.put('age-clock', state)
      await restart(DAY, { saves: false })
      expect(behind()).toBe(0)
    },
  )
})
