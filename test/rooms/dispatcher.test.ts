import { setImmediate } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { onAbort } from '../../src/base/wait.js'
import { RelayError } from '../../src/base/errors.js'
import { silentLog } from '../../src/base/log.js'
import { TIME_LIMITS } from '../../src/base/seams.js'
import { Dispatcher } from '../../src/dispatch/dispatcher.js'
import { type DispatcherOptions, MAX_SLOW, type Timer } from '../../src/dispatch/lane.js'
import { parseExec, parseForward } from '../../src/dispatch/route-text.js'
import type { Route } from '../../src/dispatch/routes.js'
import { type DeliveryResult, type OpenTarget, noResponse } from '../../src/dispatch/target.js'
import { Journal } from '../../src/journal/journal.js'
import type { Plan } from '../../src/journal/types.js'
import { openDatabase } from '../../src/store/open.js'
import { delivery } from './journal-rig.js'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
/** On this machine, and elsewhere: they are probed at other intervals. */
const ROUTES: readonly Route[] = ['http://127.0.0.1:1/', 'http://app.example/'].map(parseForward)
/** The same, of which the second one has strict order. */
const STRICT: readonly Route[] = ROUTES.map((route, i) => ({ ...route, ordered: i === 1 }))
const IDS = ROUTES.map(({ id }) => id)

type Answer = 'ok' | 'busy' | 'asks' | 'refuses' | 'down' | 'hangs'

const RESULTS: Readonly<Record<Answer, DeliveryResult>> = {
  ok: { outcome: 'succeeded', status: 200, answer: new Uint8Array(), error: null },
  busy: { outcome: 'retry', status: 503, answer: new Uint8Array(), error: null },
  asks: { outcome: 'retry', status: 429, answer: new Uint8Array(), error: null, retryAfter: HOUR },
  refuses: { outcome: 'refused', status: 404, answer: new Uint8Array(), error: null },
  down: noResponse('unreachable', 'connection refused'),
  hangs: noResponse('timed out', 'no answer'),
}

/** Time that goes on only when told to, and then from one timer to the next. */
class Time {
  now = 1_800_000_000_000
  /** Milliseconds that pass at each reading. */
  tick = 0
  /** Calls of the journal that have not ended. */
  calls = 0
  readonly timers = new Set<{ readonly at: number; readonly run: () => void }>()

  readonly clock = (): number => (this.now += this.tick)

  readonly timer: Timer = (ms, run) => {
    const timer = { at: this.now + ms, run }
    this.timers.add(timer)
    return () => this.timers.delete(timer)
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.timer(ms, resolve))
  }

  async advance(ms: number): Promise<void> {
    const until = this.now + ms
    for (;;) {
      for (let quiet = 0; quiet < 4; quiet = this.calls === 0 ? quiet + 1 : 0) await setImmediate()
      const [next] = [...this.timers].toSorted((one, other) => one.at - other.at)
      if (!next || next.at > until) break
      this.timers.delete(next)
      this.now = Math.max(this.now, next.at)
      next.run()
    }
    this.now = Math.max(this.now, until)
  }
}

async function createRig(concurrency: number, random = () => 0.5) {
  const time = new Time()
  const database = await openDatabase({ kind: 'memory', folder: '' })
  const journal = new Journal(database.sql, { clock: () => time.now })
  const state = {
    isBroken: false,
    mayRun: true,
    /** By target, or by the number of a delivery. */
    answers: new Map<string | number, Answer>(),
    ms: 10,
    /** Time limit of an attempt. */
    timeout: TIME_LIMITS.http,
    /** Until a record is on disk. */
    recordMs: 0,
  }
  /** Records of the first target, and which of them may wait for the flush of another write. */
  const recorded: { readonly n: number; readonly isLazy: boolean }[] = []
  const sent: { readonly target: string; readonly n: number; readonly at: number }[] = []
  const flying = new Map(IDS.map((id) => [id, 0]))
  let most = 0
  const count = (id: string, change: number): void => {
    flying.set(id, (flying.get(id) ?? 0) + change)
    most = Math.max(most, flying.get(id) ?? 0)
  }
  const open = ({ id }: Route): OpenTarget => ({
    async deliver({ n }, _, { signal }) {
      sent.push({ target: id, n, at: time.now })
      count(id, 1)
      const answer = state.answers.get(n) ?? state.answers.get(id) ?? 'ok'
      const result = RESULTS[answer]
      await new Promise<void>((resolve) => {
        time.timer(answer === 'hangs' ? state.timeout : state.ms, resolve)
        onAbort(signal, resolve)
      })
      count(id, -1)
      return signal.aborted ? noResponse('killed', 'relay stopped') : result
    },
    [Symbol.asyncDispose]: async () => {},
  })
  const whole = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    time.calls++
    try {
      if (state.isBroken) throw new RelayError('storage', 'the disk is full')
      return await work()
    } finally {
      time.calls--
    }
  }
  const queue: DispatcherOptions['journal'] = {
    nameTargets: (...args) => whole(() => journal.nameTargets(...args)),
    targetNames: () => whole(() => journal.targetNames()),
    next: (...args) => whole(() => journal.next(...args)),
    waiting: (...args) => whole(() => journal.waiting(...args)),
    readToSend: (...args) => whole(() => journal.readToSend(...args)),
    // Without the wait for other writes, which is of real time.
    async record(n, attempt, forward, { isLazy = false } = {}) {
      if (attempt.target === IDS[0]) recorded.push({ n, isLazy })
      if (state.recordMs > 0) await time.wait(state.recordMs)
      return whole(() => journal.record(n, attempt, forward))
    },
    expire: (...args) => whole(() => journal.expire(...args)),
    counts: () => whole(() => journal.counts()),
    hasten: (...args) => whole(() => journal.hasten(...args)),
  }
  const start = async (routes = ROUTES): Promise<Dispatcher> => {
    const dispatcher = new Dispatcher({
      journal: queue,
      concurrency,
      env: {},
      limits: TIME_LIMITS,
      onAttempt: () => {},
      log: silentLog,
      clock: time.clock,
      timer: time.timer,
      random,
      open,
      mayRun: () => state.mayRun,
      onTarget: () => {},
    })
    await dispatcher.start(() => routes)
    return dispatcher
  }
  let appended = 0
  return {
    time,
    journal,
    state,
    sent,
    recorded,
    start,
    most: () => most,
    /** How many attempts have ended. */
    answered: () => sent.length - [...flying.values()].reduce((sum, count) => sum + count, 0),
    async append(dispatcher?: Dispatcher, targets: readonly string[] = IDS): Promise<void> {
      const plan: Plan = { targets, onDuplicate: 'never' }
      await journal.append(delivery(`${++appended}`, { receivedAt: time.now }), plan)
      dispatcher?.enqueue(targets)
    },
    async statuses(): Promise<string[]> {
      const all = await journal.after(0, 1000)
      return all.flatMap(({ forwards }) => IDS.flatMap((id) => forwards[id]?.status ?? []))
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

const answer = fc.constantFrom<Answer>('ok', 'busy', 'asks', 'refuses', 'down', 'hangs')
const wait = fc.constantFrom(0, 5, 500, 2 * SECOND, 30 * SECOND, 3 * MINUTE)
const command = fc.oneof(
  { weight: 5, arbitrary: fc.record({ append: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 4, arbitrary: fc.record({ target: fc.constantFrom(...IDS), answer }) },
  { weight: 4, arbitrary: fc.record({ wait }) },
  { weight: 2, arbitrary: fc.record({ routes: fc.subarray([...STRICT]) }) },
  { weight: 2, arbitrary: fc.record({ broken: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ turns: fc.nat({ max: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ act: fc.constantFrom('retry', 'refresh', 'restart') }) },
)

describe('whatever happens, a dispatcher', () => {
  it('sends all to each target, first attempts in order at concurrency 1, never more than N and the slow at once', async () => {
    const commands = fc.array(command, { maxLength: 40, size: 'max' })
    const concurrency = fc.constantFrom(1, 1, 3)
    const share = fc.double({ min: 0, max: 0.99, noNaN: true })
    await fc.assert(
      fc.asyncProperty(concurrency, commands, share, async (n, all, random) => {
        await using rig = await createRig(n, () => random)
        const { time, state } = rig
        let [dispatcher, routes] = [await rig.start(STRICT), STRICT]
        for (const each of all) {
          if ('append' in each) for (let i = 0; i < each.append; i++) await rig.append(dispatcher)
          else if ('answer' in each) state.answers.set(each.target, each.answer)
          else if ('wait' in each) await time.advance(each.wait)
          else if ('routes' in each) dispatcher.replaceRoutes((routes = each.routes))
          else if ('broken' in each) state.isBroken = each.broken
          else if ('turns' in each) for (let i = 0; i < each.turns; i++) await setImmediate()
          else if (each.act === 'retry') await dispatcher.retryNow()
          else if (each.act === 'refresh') await dispatcher.refresh()
          else {
            await dispatcher[Symbol.asyncDispose]()
            state.isBroken = false
            dispatcher = await rig.start(routes)
          }
        }
        state.isBroken = false
        state.answers.clear()
        dispatcher.replaceRoutes(STRICT)
        await time.advance(10 * MINUTE)
        expect((await rig.statuses()).filter((status) => status === 'waiting')).toEqual([])
        expect(dispatcher.status().map(({ state, queued }) => [state, queued])).toEqual([
          ['up', 0],
          ['up', 0],
        ])
        expect(rig.most()).toBeLessThanOrEqual(n + MAX_SLOW)
        for (const { id, ordered = false } of STRICT) {
          const numbers = rig.sent.filter(({ target }) => target === id).map((each) => each.n)
          const firsts = ordered ? numbers : [...new Set(numbers)]
          const sorted = firsts.toSorted((one, other) => one - other)
          expect(firsts).toEqual(n === 1 || ordered ? sorted : firsts)
        }
        await dispatcher[Symbol.asyncDispose]()
        expect(time.timers.size).toBe(0)
      }),
      { numRuns: 40 },
    )
  })
})

describe('of 200 deliveries', () => {
  const COUNT = 200
  const trouble = fc.constantFrom<Answer>('busy', 'refuses', 'asks', 'hangs')
  /** Runs of deliveries with the same trouble, and single ones. */
  const runs = fc.array(
    fc.record({
      from: fc.integer({ min: 1, max: COUNT }),
      length: fc.oneof(fc.constant(1), fc.constant(1), fc.integer({ min: 2, max: 40 })),
      trouble,
    }),
    { maxLength: 40, size: 'max' },
  )
  const troubles = runs.map((all) => {
    const answers = new Map<number, Answer>()
    for (const { from, length, trouble: answer } of all)
      for (let n = from; n < Math.min(from + length, COUNT + 1); n++) answers.set(n, answer)
    return answers
  })

  const timeouts = fc.constantFrom(200, SECOND, 4 * SECOND, 5 * SECOND, 30 * SECOND)
  const ways = ['at once', 'one by one', 'as the last one is answered'] as const

  it.each(ways)('%s: none waits for the trouble of others, whatever the time limit', async (how) => {
    await fc.assert(
      fc.asyncProperty(troubles, fc.constantFrom(1, 3), timeouts, async (answers, concurrency, timeout) => {
        await using rig = await createRig(concurrency)
        rig.state.timeout = timeout
        const [id = ''] = IDS
        for (const [n, answer] of answers) rig.state.answers.set(n, answer)
        await using dispatcher = await rig.start(ROUTES.slice(0, 1))
        const appended: number[] = []
        for (let i = 0; i < COUNT; i++) {
          await rig.append(dispatcher, [id])
          appended.push(rig.time.now)
          if (how === 'one by one') await rig.time.advance(2 * SECOND)
          if (how === 'as the last one is answered') await rig.time.advance(rig.state.ms)
        }
        await rig.time.advance(HOUR)
        const first = new Map(rig.sent.toReversed().map(({ n, at }) => [n, at]))
        const order = [...first].toSorted(([, one], [, other]) => one - other).map(([n]) => n)
        const sorted = order.toSorted((one, other) => one - other)
        expect(order).toEqual(concurrency === 1 ? sorted : order)
        // What is answered takes its time; what is not, at most the limit of one attempt. With a limit so short that the next
        // one goes out only when it ends, one that was answered and is tried again may have its turn in between.
        const hangs = [...answers.values()].includes('hangs')
        const turn = timeout > TIME_LIMITS.slow ? 0 : rig.state.ms
        const bound = hangs ? timeout + turn : 2 * rig.state.ms
        for (let n = 1; n <= COUNT; n++) {
          const ready = Math.max(appended[n - 1] ?? NaN, first.get(n - 1) ?? 0)
          expect([n, (first.get(n) ?? Infinity) - ready <= bound]).toEqual([n, true])
        }
        // Five attempts, and no more. A target that leaves all unanswered is probed less and less.
        for (let n = 1; n <= COUNT; n++) {
          const count = rig.sent.filter((each) => each.n === n).length
          const most = ['refuses', undefined].includes(answers.get(n)) ? 1 : 5
          expect([n, count >= (hangs ? 1 : most), count <= most]).toEqual([n, true, true])
        }
      }),
      { numRuns: 12 },
    )
  })

  it('a slow one lets the next one go after five seconds, at most six at once, and a command does not', async () => {
    const starts = async (route: string | Route, answer: Answer): Promise<number[]> => {
      await using rig = await createRig(1)
      const all = typeof route === 'string' ? parseForward(route) : route
      rig.state.answers.set(all.id, answer)
      await using dispatcher = await rig.start([all])
      const began = rig.time.now
      for (let i = 0; i < 10; i++) await rig.append(dispatcher, [all.id])
      await rig.time.advance(29 * SECOND)
      return rig.sent.map(({ at }) => (at - began) / SECOND)
    }
    expect(await starts('http://app.example/', 'hangs')).toEqual([0, 5, 10, 15, 20, 25])
    expect(await starts(parseExec('./deploy'), 'hangs')).toEqual([0])
    expect(await starts({ ...parseForward('http://app.example/'), ordered: true }, 'hangs')).toEqual([0])
  })
})

describe('the number of deliveries that wait', () => {
  it('has none that is answered, also before that is on disk, and whenever it is counted again', async () => {
    const [id = ''] = IDS
    const moments = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(
        moments,
        fc.constantFrom(0, 30, 200),
        fc.constantFrom(1, 4),
        async (waits, recordMs, concurrency) => {
          await using rig = await createRig(concurrency)
          rig.state.recordMs = recordMs
          await using dispatcher = await rig.start(ROUTES.slice(0, 1))
          for (let i = 0; i < 60; i++) await rig.append(dispatcher, [id])
          for (const [i, ms] of waits.entries()) {
            await rig.time.advance(ms)
            if (i % 2 === 0) await dispatcher.refresh()
            expect(dispatcher.status()).toMatchObject([{ queued: 60 - rig.answered() }])
          }
          await rig.time.advance(MINUTE)
          expect(dispatcher.status()).toMatchObject([{ queued: 0 }])
        },
      ),
      { numRuns: 30 },
    )
  })
})

it.each([1, 2, 5])(
  'of %d deliveries, the last answer is on disk without a wait for other writes',
  async (count) => {
    await using rig = await createRig(1)
    for (let n = 1; n <= count; n++) await rig.append()
    const dispatcher = await rig.start()
    await rig.time.advance(SECOND)
    const all = Array.from({ length: count }, (_, i) => ({ n: i + 1, isLazy: i + 1 < count }))
    expect(rig.recorded).toEqual(all)
    await dispatcher[Symbol.asyncDispose]()
  },
)

it('the answer to one that waits alone and is tried again is on disk without that wait, too', async () => {
  await using rig = await createRig(1)
  rig.state.answers.set(1, 'busy')
  await rig.append()
  const dispatcher = await rig.start()
  await rig.time.advance(MINUTE)
  rig.state.answers.clear()
  await rig.time.advance(MINUTE)
  expect(rig.recorded.length).toBeGreaterThan(2)
  expect(rig.recorded).toEqual(rig.recorded.map(({ n }) => ({ n, isLazy: false })))
  await dispatcher[Symbol.asyncDispose]()
})

describe('a target that leaves several different deliveries unanswered', () => {
  it('is down, and probed in turn with different ones until it answers', async () => {
    await using rig = await createRig(1)
    const [id = ''] = IDS
    rig.state.answers.set(id, 'hangs')
    await using dispatcher = await rig.start(ROUTES.slice(0, 1))
    for (let i = 0; i < 8; i++) await rig.append(dispatcher, [id])
    await rig.time.advance(34 * SECOND)
    expect(dispatcher.status()).toMatchObject([{ state: 'up' }])
    await rig.time.advance(7 * SECOND)
    expect(dispatcher.status()).toMatchObject([{ state: 'down', queued: 8 }])
    await rig.time.advance(60 * SECOND)
    expect(rig.sent.slice(0, 8).map(({ n }) => n)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    rig.state.answers.delete(id)
    await rig.time.advance(3 * MINUTE)
    expect(await rig.statuses()).toEqual(Array.from({ length: 8 }, () => 'succeeded'))
    expect(dispatcher.status()).toMatchObject([{ state: 'up', queued: 0 }])
  })

  it('is not, if it answers others in between', async () => {
    await using rig = await createRig(1)
    const [id = ''] = IDS
    for (const n of [1, 3, 5, 7]) rig.state.answers.set(n, 'hangs')
    await using dispatcher = await rig.start(ROUTES.slice(0, 1))
    for (let i = 0; i < 8; i++) await rig.append(dispatcher, [id])
    for (let i = 0; i < 300; i++) {
      await rig.time.advance(SECOND)
      expect(dispatcher.status()).toMatchObject([{ state: 'up' }])
      await rig.append(dispatcher, [id])
    }
    expect((await rig.statuses()).filter((status) => status === 'failed')).toHaveLength(4)
  })
})

describe('a target that is down', () => {
  it('has a moment of its next attempt, also when that is now', async () => {
    await using rig = await createRig(1)
    rig.state.answers.set(IDS[0] ?? '', 'down')
    await using dispatcher = await rig.start()
    await rig.append(dispatcher)
    await rig.time.advance(SECOND / 2)
    const next = () => Number(dispatcher.status()[0]?.nextProbeAt)
    expect(next()).toBeGreaterThan(rig.time.now)
    await dispatcher.retryNow()
    expect(next()).toBe(rig.time.now)
  })

  it('is probed, however its moment falls between two readings of the clock', async () => {
    for (let early = 0; early < 5; early += 0.25) {
      await using rig = await createRig(1)
      rig.state.answers.set(IDS[0] ?? '', 'down')
      await using dispatcher = await rig.start()
      await rig.append(dispatcher)
      await rig.time.advance(SECOND / 2)
      const { nextProbeAt = 0 } = dispatcher.status()[0] ?? {}
      rig.state.answers.clear()
      await rig.time.advance(nextProbeAt - rig.time.now - early)
      rig.time.tick = 0.4
      await rig.append(dispatcher)
      await rig.time.advance(MINUTE)
      expect(await rig.statuses()).toEqual(Array.from({ length: 4 }, () => 'succeeded'))
    }
  })

  it('loses what is over 24 h old once it has been down for ten minutes of this run, and not before', async () => {
    await using rig = await createRig(1)
    await rig.append()
    rig.time.now += 60 * HOUR
    rig.state.answers.set(IDS[0] ?? '', 'down')
    await using dispatcher = await rig.start()
    await rig.append(dispatcher)
    await rig.time.advance(9 * MINUTE)
    expect(await rig.statuses()).toEqual(['waiting', 'succeeded', 'waiting', 'succeeded'])
    await rig.time.advance(2 * MINUTE)
    expect(await rig.statuses()).toEqual(['failed', 'succeeded', 'waiting', 'succeeded'])
    expect(dispatcher.status()[0]).toMatchObject({ state: 'down', queued: 1 })
  })

  it('loses nothing by its age while the machine sleeps, also when it was down before', async () => {
    await using rig = await createRig(1)
    await rig.append()
    rig.state.answers.set(IDS[0] ?? '', 'down')
    await using _ = await rig.start()
    await rig.time.advance(2 * MINUTE)
    rig.time.now += 60 * HOUR
    await rig.time.advance(2 * MINUTE)
    expect(await rig.statuses()).toEqual(['waiting', 'succeeded'])
    await rig.time.advance(9 * MINUTE)
    expect(await rig.statuses()).toEqual(['failed', 'succeeded'])
  })

  it('that is no longer configured loses what is over 24 h old within a minute', async () => {
    await using rig = await createRig(1)
    await rig.append()
    rig.time.now += 24 * HOUR - 90 * SECOND
    await using dispatcher = await rig.start(ROUTES.slice(0, 1))
    await rig.time.advance(MINUTE)
    expect(dispatcher.status()[1]).toMatchObject({ state: 'gone', queued: 1 })
    expect(await rig.statuses()).toEqual(['succeeded', 'waiting'])
    await rig.time.advance(2 * MINUTE)
    expect(await rig.statuses()).toEqual(['succeeded', 'failed'])
    expect(dispatcher.status()).toHaveLength(1)
  })
})

it('a target that asks for an hour is asked again after a minute', async () => {
  await using rig = await createRig(1)
  rig.state.answers.set(IDS[0] ?? '', 'asks')
  await using dispatcher = await rig.start()
  await rig.append(dispatcher)
  await rig.time.advance(2 * MINUTE)
  const [first = NaN, second = NaN] = rig.sent.filter(({ target }) => target === IDS[0]).map(({ at }) => at)
  expect(second - first - rig.state.ms).toBe(MINUTE)
})

it('a target that is removed and back at once gets all, at whatever moment', async () => {
  for (let turns = 0; turns < 60; turns++) {
    await using rig = await createRig(1)
    await using dispatcher = await rig.start()
    await rig.time.advance(SECOND)
    await rig.append(dispatcher)
    for (let i = 0; i < turns; i++) await Promise.resolve()
    dispatcher.replaceRoutes([])
    dispatcher.replaceRoutes(ROUTES)
    await rig.time.advance(MINUTE)
    expect([turns, await rig.statuses()]).toEqual([turns, ['succeeded', 'succeeded']])
  }
})

it('nothing is sent while another relay has the turn', async () => {
  await using rig = await createRig(1)
  rig.state.mayRun = false
  await using dispatcher = await rig.start()
  await rig.append(dispatcher)
  await rig.time.advance(MINUTE)
  expect([rig.sent, await rig.statuses()]).toEqual([[], ['waiting', 'waiting']])
})
