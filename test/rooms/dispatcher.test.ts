import { setImmediate } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { onAbort } from '../../src/base/wait.js'
import { RelayError } from '../../src/base/errors.js'
import { silentLog } from '../../src/base/log.js'
import { TIME_LIMITS } from '../../src/base/seams.js'
import { Dispatcher, type DispatcherOptions, type Timer } from '../../src/dispatch/dispatcher.js'
import { parseForward, type Route } from '../../src/dispatch/routes.js'
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
  /** Calls of the journal that have not ended. */
  calls = 0
  readonly timers = new Set<{ readonly at: number; readonly run: () => void }>()

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
    this.now = until
  }
}

async function createRig(concurrency: number, random = () => 0.5) {
  const time = new Time()
  const database = await openDatabase({ kind: 'memory', folder: '' })
  const journal = new Journal(database.sql, { clock: () => time.now })
  const state = { isBroken: false, mayRun: true, answers: new Map<string, Answer>(), ms: 10 }
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
      const result = RESULTS[state.answers.get(id) ?? 'ok']
      await new Promise<void>((resolve) => {
        time.timer(state.ms, resolve)
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
    next: (...args) => whole(() => journal.next(...args)),
    read: (...args) => whole(() => journal.read(...args)),
    record: (...args) => whole(() => journal.record(...args)),
    expire: (...args) => whole(() => journal.expire(...args)),
    counts: () => whole(() => journal.counts()),
  }
  const start = async (routes = ROUTES): Promise<Dispatcher> => {
    const dispatcher = new Dispatcher({
      journal: queue,
      concurrency,
      env: {},
      limits: TIME_LIMITS,
      onAttempt: () => {},
      log: silentLog,
      clock: () => time.now,
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
    start,
    most: () => most,
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
  { weight: 2, arbitrary: fc.record({ routes: fc.subarray([...ROUTES]) }) },
  { weight: 2, arbitrary: fc.record({ broken: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ turns: fc.nat({ max: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ act: fc.constantFrom('retry', 'refresh', 'restart') }) },
)

describe('whatever happens, a dispatcher', () => {
  it('sends all to each target, in order at concurrency 1, never more than N at once', async () => {
    const commands = fc.array(command, { maxLength: 40, size: 'max' })
    const concurrency = fc.constantFrom(1, 1, 3)
    const share = fc.double({ min: 0, max: 0.99, noNaN: true })
    await fc.assert(
      fc.asyncProperty(concurrency, commands, share, async (n, all, random) => {
        await using rig = await createRig(n, () => random)
        const { time, state } = rig
        let [dispatcher, routes] = [await rig.start(), ROUTES]
        for (const each of all) {
          if ('append' in each) for (let i = 0; i < each.append; i++) await rig.append(dispatcher)
          else if ('answer' in each) state.answers.set(each.target, each.answer)
          else if ('wait' in each) await time.advance(each.wait)
          else if ('routes' in each) dispatcher.replaceRoutes((routes = each.routes))
          else if ('broken' in each) state.isBroken = each.broken
          else if ('turns' in each) for (let i = 0; i < each.turns; i++) await setImmediate()
          else if (each.act === 'retry') dispatcher.retryNow()
          else if (each.act === 'refresh') await dispatcher.refresh()
          else {
            await dispatcher[Symbol.asyncDispose]()
            state.isBroken = false
            dispatcher = await rig.start(routes)
          }
        }
        state.isBroken = false
        state.answers.clear()
        dispatcher.replaceRoutes(ROUTES)
        await time.advance(10 * MINUTE)
        expect((await rig.statuses()).filter((status) => status === 'waiting')).toEqual([])
        expect(dispatcher.status().map(({ state, queued }) => [state, queued])).toEqual([
          ['up', 0],
          ['up', 0],
        ])
        expect(rig.most()).toBeLessThanOrEqual(n)
        for (const id of IDS) {
          const numbers = rig.sent.filter(({ target }) => target === id).map((each) => each.n)
          expect(numbers).toEqual(n === 1 ? numbers.toSorted((one, other) => one - other) : numbers)
        }
        await dispatcher[Symbol.asyncDispose]()
        expect(time.timers.size).toBe(0)
      }),
      { numRuns: 40 },
    )
  })
})

describe('a target that is down', () => {
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
