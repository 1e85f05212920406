import * as fc from 'fast-check'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { MAX_AGE_MS } from '../../src/dispatch/policy.js'
import { type QueueParts, type AttemptResult, TargetQueue } from '../../src/dispatch/queue.js'
import { VirtualTime } from './virtual-time.js'

const DONE: AttemptResult = { reached: true, ended: true }
const NOT_SENT: AttemptResult = { reached: undefined, ended: false }
const DOWN: AttemptResult = { reached: false, ended: false }
const later = (delay: number): AttemptResult => ({ reached: true, ended: false, delay })

/** The result of an entry that has ended, which is recorded when the test says so. */
function recording() {
  let resolve = (): void => {}
  const recorded = new Promise<void>((done) => (resolve = done))
  const result: AttemptResult = { ...DONE, recorded }
  const end = async (): Promise<void> => {
    resolve()
    await turn()
  }
  return { result, end }
}

interface Tried {
  readonly n: number
  readonly end: (result: AttemptResult) => Promise<void>
}

/** A queue in virtual time whose attempts the test ends. */
function rig(concurrency = 1, over: Partial<QueueParts> = {}) {
  const time = new VirtualTime()
  const tried: Tried[] = []
  const states: string[] = []
  const expired: number[] = []
  const queue = new TargetQueue({
    concurrency,
    time,
    expire: async (numbers) => {
      expired.push(...numbers)
      return []
    },
    onState: () => states.push(queue.status.state),
    onProgress: () => {},
    ...over,
  })
  const attempt = (n: number): Promise<AttemptResult> =>
    new Promise((resolve) => {
      tried.push({
        n,
        end: async (result) => {
          resolve(result)
          await turn()
        },
      })
    })
  const add = async (...numbers: number[]): Promise<void> => {
    for (const n of numbers) queue.add(n, time.clock())
    await turn()
  }
  const last = (): Tried => {
    const found = tried.at(-1)
    if (!found) throw new Error('nothing was attempted')
    return found
  }
  return { queue, time, tried, states, expired, attempt, add, last, order: () => tried.map(({ n }) => n) }
}

describe('a queue', () => {
  it('attempts one entry after the other, in order of the numbers', async () => {
    const { queue, attempt, add, last, order } = rig()
    queue.attach(attempt)
    await add(2, 3)
    await add(1)
    expect(order()).toEqual([2])
    for (let i = 0; i < 3; i++) await last().end(DONE)
    expect(order()).toEqual([2, 1, 3])
    expect([queue.status, queue.isIdle]).toEqual([{ state: 'up', queued: 0 }, true])
  })

  it('attempts as many at once as it may', async () => {
    const { queue, attempt, add, tried, order } = rig(3)
    queue.attach(attempt)
    await add(1, 2, 3, 4, 5)
    expect(order()).toEqual([1, 2, 3])
    await tried[1]?.end(DONE)
    expect(order()).toEqual([1, 2, 3, 4])
    expect(queue.status).toEqual({ state: 'up', queued: 4 })
  })

  it('keeps the place of an entry that must be attempted again, while others wait', async () => {
    const { queue, time, attempt, add, last, order } = rig()
    queue.attach(attempt)
    await add(1, 2)
    await last().end(later(5000))
    expect([order(), time.waits]).toEqual([[1], [5000]])
    await time.next()
    await last().end(DONE)
    expect(order()).toEqual([1, 1, 2])
  })

  it('attempts at once, when that is asked for, what waits for a target that is down or for its own delay', async () => {
    const { queue, time, attempt, add, last, order } = rig()
    queue.attach(attempt)
    await add(1)
    await last().end(DOWN)
    queue.retryNow()
    expect([order(), time.waits]).toEqual([[1, 1], []])
    await last().end(later(2000))
    expect(time.waits).toEqual([2000])
    queue.retryNow()
    expect([order(), time.waits]).toEqual([[1, 1, 1], []])
  })

  it('attempts one entry at a time while the target is down, at growing intervals, until it answers', async () => {
    const { queue, time, states, attempt, add, last, order } = rig()
    const since = time.clock()
    queue.attach(attempt)
    await add(1, 2, 3)
    const waits: number[] = []
    for (let i = 0; i < 8; i++) {
      await last().end(DOWN)
      waits.push(...time.waits)
      expect(queue.status).toEqual({
        state: 'down',
        queued: 3,
        since,
        nextProbeAt: time.clock() + (time.waits[0] ?? 0),
      })
      await time.next()
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
    expect([order(), states]).toEqual([Array(9).fill(1), ['down']])
    await last().end(DONE)
    await last().end(DOWN)
    expect([time.waits, states]).toEqual([[1000], ['down', 'up', 'down']])
  })

  it('attempts one for a target on this machine every second for a minute, then every 5 s', async () => {
    const { queue, time, attempt, add, last } = rig()
    queue.attach(attempt, { nearby: true })
    await add(1)
    const waits: number[] = []
    for (let i = 0; i < 63; i++) {
      await last().end(DOWN)
      waits.push(await time.next())
    }
    expect(waits).toEqual([...Array<number>(60).fill(1000), 5000, 5000, 5000])
  })

  it('counts several that failed together as one failure', async () => {
    const { queue, time, tried, attempt, add, order } = rig(3)
    queue.attach(attempt)
    await add(1, 2, 3, 4)
    await tried[2]?.end(DOWN)
    await add(5)
    expect([time.waits, order()]).toEqual([[1000], [1, 2, 3]])
    await tried[0]?.end(DOWN)
    time.advance(1000)
    expect(order()).toEqual([1, 2, 3])
    await tried[1]?.end(DOWN)
    expect(order()).toEqual([1, 2, 3, 1])
    await tried[3]?.end(DONE)
    expect(order()).toEqual([1, 2, 3, 1, 2, 3, 4])
  })

  it('comes up again with any answer', async () => {
    const { queue, time, tried, states, attempt, add, order } = rig(2)
    queue.attach(attempt)
    await add(1, 2, 3)
    await tried[0]?.end(DOWN)
    await tried[1]?.end(DONE)
    expect([order(), states, time.waits]).toEqual([[1, 2, 1, 3], ['down', 'up'], []])
  })

  it('attempts an entry again that arrived again while in flight', async () => {
    const { queue, attempt, add, last, order } = rig()
    queue.attach(attempt)
    await add(1, 2)
    await add(1, 1)
    await last().end(DONE)
    expect(order()).toEqual([1, 1])
    await last().end(DONE)
    await last().end(DONE)
    expect([order(), queue.isEmpty]).toEqual([[1, 1, 2], true])
  })

  it('continues while ends are recorded, up to four times as many', async () => {
    const { queue, attempt, add, tried, order } = rig(2)
    const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1)
    queue.attach(attempt)
    await add(...upTo(12))
    const recorded = upTo(8).map(recording)
    for (const [i, { result }] of recorded.entries()) await tried[i]?.end(result)
    expect([order(), queue.status.queued]).toEqual([upTo(9), 4])
    await recorded[5]?.end()
    expect([order(), queue.isIdle]).toEqual([upTo(10), false])
  })

  it('with one at a time starts the next attempt at once, but sends only after the end before is recorded', async () => {
    const { queue, attempt, add, last, order } = rig()
    const sent: number[] = []
    queue.attach((n, { ready }) => {
      void ready().then((isReady) => isReady && sent.push(n))
      return attempt(n)
    })
    await add(1, 2)
    const recorded = recording()
    await last().end(recorded.result)
    expect([order(), sent]).toEqual([[1, 2], [1]])
    await recorded.end()
    expect([order(), sent]).toEqual([
      [1, 2],
      [1, 2],
    ])
  })

  it('sends nothing that was about to be sent when its target is removed, and attempts it again later', async () => {
    const { queue, tried, attempt, add, order } = rig()
    const answers: boolean[] = []
    const readyOf: (() => Promise<boolean>)[] = []
    queue.attach((n, { ready }) => {
      readyOf.push(ready)
      return attempt(n)
    })
    const ask = async (i: number): Promise<void> => void answers.push((await readyOf[i]?.()) ?? true)
    await add(1)
    queue.detach()
    await ask(0)
    await tried[0]?.end(NOT_SENT)
    expect([order(), queue.status.queued]).toEqual([[1], 1])
    queue.attach(attempt)
    await ask(0)
    expect([answers, order()]).toEqual([
      [false, false],
      [1, 1],
    ])
  })

  it('attempts an entry again that arrived again while its end was recorded, and only then', async () => {
    const { queue, attempt, add, last, order } = rig(2)
    queue.attach(attempt)
    await add(1)
    const recorded = recording()
    await last().end(recorded.result)
    await add(1)
    expect(order()).toEqual([1])
    await recorded.end()
    expect(order()).toEqual([1, 1])
    await last().end(DONE)
    expect(queue.isEmpty).toBe(true)
  })

  it('fails entries that are too old when the target cannot be reached', async () => {
    const { queue, time, expired, attempt, add, last } = rig()
    queue.attach(attempt)
    await add(1, 2)
    await last().end(DOWN)
    time.advance(1000)
    await add(3)
    time.advance(MAX_AGE_MS - 1000)
    await last().end({ reached: false, ended: true })
    expect([expired, queue.status.queued]).toEqual([[2], 1])
  })

  it('keeps entries that it could not fail, and attempts them again', async () => {
    const { queue, time, attempt, add, last } = rig(1, { expire: async (numbers) => numbers })
    queue.attach(attempt)
    await add(1)
    await last().end(DOWN)
    time.advance(MAX_AGE_MS)
    await last().end(DOWN)
    await turn()
    expect(queue.status.queued).toBe(1)
  })

  it('waits while its target is removed, however long, and continues when it returns', async () => {
    const { queue, time, states, expired, tried, attempt, add, last, order } = rig()
    queue.attach(attempt)
    await add(1, 2)
    queue.detach()
    const since = time.clock()
    await tried[0]?.end(later(5000))
    await add(3)
    expect([order(), queue.status, queue.isIdle]).toEqual([[1], { state: 'gone', queued: 3, since }, true])
    time.advance(MAX_AGE_MS / 2)
    await add(4)
    queue.attach(attempt)
    expect([order(), queue.status]).toEqual([[1, 1], { state: 'up', queued: 4 }])
    expect(states).toEqual(['gone', 'up'])
    await last().end(DONE)
    await last().end(DONE)
    queue.detach()
    await last().end(later(0))
    time.advance(MAX_AGE_MS / 2 + 60_000)
    await turn()
    expect([expired, queue.status.queued]).toEqual([[3], 1])
    await queue.close()
    expect(time.waits).toEqual([])
  })

  it('closes in the middle of anything, and leaves no timer', async () => {
    for (const result of [later(5000), DOWN, DONE, undefined]) {
      const { queue, time, tried, attempt, add, last, order } = rig()
      queue.attach((n, { signal }) => {
        const ending = attempt(n)
        const { end } = last()
        signal.addEventListener('abort', () => void end({ reached: undefined, ended: false }))
        return ending
      })
      await add(1, 2)
      if (result) await tried[0]?.end(result)
      const before = order()
      queue.add(3, 0)
      await queue.close()
      queue.add(4, 0)
      await turn()
      expect([order(), time.waits]).toEqual([before, []])
    }
  })
})

describe('the law of the queue', () => {
  /** What happens to an entry at each attempt until the last, which succeeds. */
  const fate = fc.array(fc.constantFrom(later(0), later(1000), later(40_000), DOWN), { maxLength: 6 })
  const action = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('add'), fate, again: fc.boolean() }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('end'), which: fc.nat() }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('advance'), ms: fc.nat(90_000) }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'detach' } as const) },
    { weight: 2, arbitrary: fc.constant({ kind: 'attach' } as const) },
  )

  it('every entry ends, once, and in order with a concurrency of 1', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(action, { maxLength: 60 }),
        async (concurrency, actions) => {
          const { queue, time, last, attempt } = rig(concurrency)
          const fates = new Map<number, AttemptResult[]>()
          const ended: number[] = []
          const open: Tried[] = []
          const attemptOne = async (n: number): Promise<AttemptResult> => {
            expect(open.map((each) => each.n)).not.toContain(n)
            const ending = attempt(n)
            open.push(last())
            expect(open.length).toBeLessThanOrEqual(concurrency)
            return ending
          }
          const end = async (which: number): Promise<void> => {
            const [one] = open.splice(which % open.length, 1)
            if (!one) return
            const result = fates.get(one.n)?.shift() ?? DONE
            if (result.ended) ended.push(one.n)
            await one.end(result)
          }
          queue.attach(attemptOne)
          for (const each of actions) {
            if (each.kind === 'add' && 'fate' in each) {
              const n = fates.size + 1
              fates.set(n, [...each.fate])
              queue.add(n, time.clock())
              if (each.again) queue.add(n, time.clock())
            }
            if (each.kind === 'end' && 'which' in each && open.length > 0) await end(each.which)
            if (each.kind === 'advance' && 'ms' in each) time.advance(each.ms)
            if (each.kind === 'detach') queue.detach()
            if (each.kind === 'attach' && queue.status.state === 'gone') queue.attach(attemptOne)
            await turn()
          }
          if (queue.status.state === 'gone') queue.attach(attemptOne)
          for (let i = 0; !queue.isEmpty; i++) {
            if (i > 5000) throw new Error(`stuck: ${JSON.stringify([queue.status, time.waits])}`)
            if (open.length > 0) await end(0)
            else time.advance(72_000)
            await turn()
          }
          const all = [...fates.keys()]
          expect(concurrency === 1 ? ended : ended.toSorted((one, other) => one - other)).toEqual(all)
          await queue.close()
          expect(time.waits).toEqual([])
        },
      ),
      { numRuns: 300 },
    )
  })
})
