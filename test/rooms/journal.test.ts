import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import { SharedStore } from '../../src/base/shared-store.js'
import { Secret } from '../../src/base/secret.js'
import { type Filter, matches, parseMatch } from '../../src/journal/filter.js'
import { Journal } from '../../src/journal/journal.js'
import type { Attempt, Delivery, Forward, Plan } from '../../src/journal/types.js'
import { openPostgres } from '../../src/store/postgres.js'
import { FAILED_ATTEMPT } from '../../src/store/schema.js'
import type { Sql } from '../../src/store/sql.js'
import { MEMORY, openSqlite } from '../../src/store/sqlite.js'
import { describeWith } from '../kit/needs.js'
import { database, PASSWORD } from '../kit/postgres.js'
import { byKey, Model, type ModelEntry } from './journal-model.js'
import { attempt, delivery as deliveryOf, open, succeeded } from './journal-rig.js'
import { same } from './same.js'

const START = 1_800_000_000_000
const MINUTE = 60_000
const TARGETS = ['*=http://127.0.0.1:1', 'push=exec:true', '__proto__'] as const
const BODIES = ['{"zen":"Keep it Café"}', '{"zen":"anything added \\u0000 dilutes"}', '100% of_it']

const target = fc.constantFrom(...TARGETS)
const plan: fc.Arbitrary<Plan> = fc
  .record({
    targets: fc.uniqueArray(target, { maxLength: 3 }),
    ignoredBy: fc.option(fc.constant('push'), { freq: 6, nil: undefined }),
    onDuplicate: fc.constantFrom('if-failed', 'always', 'never'),
  })
  .map((each) => (each.ignoredBy === undefined ? each : { ...each, targets: [] }))

const restored = fc
  .record({ body: fc.nat({ max: 2 }), kind: fc.constantFrom('proved', 'unproved', 'repeatable') })
  .map(({ body, kind }) => ({
    how: 'raw',
    sha256: `digest-${body}`,
    ...(kind === 'unproved' && { unproved: true as const, named: true as const }),
    ...(kind === 'repeatable' && { repeatable: true as const }),
  }))
const delivery = fc
  .record({
    deliveryId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
    hookId: fc.constantFrom('', '1', '2'),
    kind: fc.constantFrom<[string, string | null]>(
      ['push', null],
      ['issues', 'opened'],
      ['issues', 'closed'],
      ['x', 'a.b'],
      ['x.a', null],
    ),
    repo: fc.constantFrom('octo/demo', 'Octo/Other', null),
    number: fc.constantFrom(7, null),
    body: fc.constantFrom(...BODIES),
    restored: fc.option(restored, { nil: undefined, freq: 2 }),
    jitter: fc.nat({ max: 50_000 }),
  })
  .map(({ kind: [event, action], body, jitter, restored: how, ...rest }) => ({
    jitter,
    delivery: {
      provider: 'github',
      event,
      action,
      headers: [['X-Twice', 'é']] as const,
      body: new Uint8Array(Buffer.from(body)),
      verifiedBy: 'current' as const,
      ...rest,
      ...(how && { restored: how }),
    },
  }))

const entry = fc.nat({ max: 12 })
const command = fc.oneof(
  { weight: 6, arbitrary: fc.record({ append: fc.array(fc.record({ delivery, plan }), { maxLength: 3 }) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      record: entry,
      target,
      outcome: fc.constantFrom('succeeded', 'refused', 'retry', 'unreachable', 'timed out', 'killed'),
      error: fc.constantFrom('reset', 'refused', null),
      status: fc.constantFrom('waiting', 'succeeded', 'failed'),
      tries: fc.nat({ max: 2 }),
      delay: fc.nat({ max: 2 * MINUTE }),
      twice: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      again: entry,
      targets: fc.uniqueArray(target),
      rule: fc.constantFrom('always', 'if-failed', 'never'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ skip: entry }) },
  { weight: 2, arbitrary: fc.record({ wait: fc.nat({ max: 5 * MINUTE }) }) },
  { weight: 1, arbitrary: fc.record({ expire: fc.nat({ max: 5 * MINUTE }), target: fc.option(target) }) },
  { weight: 1, arbitrary: fc.record({ sweep: fc.nat({ max: 10 * MINUTE }) }) },
)
const back = fc.record({ wait: fc.integer({ min: -60 * MINUTE, max: -2 * MINUTE }) })

type Command = typeof command extends fc.Arbitrary<infer Each> ? Each : never

const filter: fc.Arbitrary<Filter> = fc.record(
  {
    events: fc.uniqueArray(
      fc
        .constantFrom('push', 'issues', 'issues.*', 'issues.opened', '*.closed', '*', '*.a.b', 'x.a')
        .map(parseMatch),
    ),
    repo: fc.constantFrom('octo/demo', 'OCTO/OTHER', 'octo/none'),
    status: fc.constantFrom('failed', 'failed attempt', 'waiting', 'succeeded', 'none'),
    text: fc.constantFrom('KEEP', 'café', 'é', '%', '_', '\\u0000', 'zen"', 'absent'),
    last: fc.integer({ min: 1, max: 4 }),
    before: fc.nat({ max: 14 }),
    since: fc.nat({ max: 20 * MINUTE }).map((ms) => START + ms),
    until: fc.nat({ max: 20 * MINUTE }).map((ms) => START + ms),
  },
  { requiredKeys: [] },
)

async function run(sql: Sql, commands: readonly Command[], filters: readonly Filter[]): Promise<void> {
  let now = START
  const model = new Model()
  const journal = new Journal(sql, { clock: () => now })
  for (const each of commands) {
    now += 1000
    if ('wait' in each) now += each.wait
    else if ('append' in each) {
      const all = each.append.map(({ delivery: { jitter, delivery }, plan }): [Delivery, Plan] => [
        { ...delivery, receivedAt: now - jitter },
        plan,
      ])
      const receipts = await Promise.all(all.map((args) => journal.append(...args)))
      for (const [i, args] of all.entries()) {
        const { n, duplicate, targets = [] } = receipts[i] ?? {}
        same({ n, duplicate, targets: targets.toSorted() }, sorted(model.append(...args)))
      }
    } else if ('record' in each) {
      const { outcome, status, tries, error, delay } = each
      const common = { at: now, target: each.target, outcome, error, status: null, ms: 1.5, count: 1 }
      const attempt: Attempt = { ...common, answer: Uint8Array.of(0, 255), headers: [['a', 'b']] }
      const due = status === 'waiting' && tries > 0 ? { due: now + delay } : {}
      const why = status === 'failed' ? { reason: 'why' } : {}
      const forward: Forward = { status, tries, since: now, ...due, ...why }
      for (let times = each.twice ? 2 : 1; times > 0; times--) {
        await journal.record(each.record, attempt, forward)
        model.record(each.record, attempt, forward)
      }
    } else if ('again' in each)
      same(
        (await journal.requeue(each.again, each.targets, each.rule))?.toSorted(),
        model.again(each.again, each.targets, each.rule, now)?.toSorted(),
      )
    else if ('skip' in each)
      same((await journal.skip(each.skip)).toSorted(), model.skip(each.skip).toSorted())
    else if ('expire' in each) {
      const which = each.target === null ? { except: [TARGETS[0]] } : { target: each.target }
      same(await journal.expire(now - each.expire, which), model.expire(now - each.expire, which))
    } else same(await journal.sweep({ keep: each.sweep, keepMax: Infinity }), model.sweep(each.sweep, now))
  }
  await journal.flush()
  same(await viewOf(journal), model.view())
  for (const [i, id] of TARGETS.entries()) {
    const waiting = model.waiting(id)
    const [first] = waiting
    const busy = first && i > 0 ? [first.n] : []
    for (const ordered of [false, true]) {
      const next = await journal.next(id, { limit: 3, except: busy, ordered })
      const isFree = ({ n }: { readonly n: number }): boolean => !busy.includes(n)
      const dueOf = ({ forwards }: ModelEntry): number => forwards.get(id)?.due ?? 0
      const again = waiting.filter((entry) => isFree(entry) && dueOf(entry) > 0)
      const byDue = again.toSorted((one, other) => dueOf(one) - dueOf(other))
      same(
        { first: next.first.map(({ n }) => n), again: next.again.map(({ n }) => n) },
        {
          first: waiting
            .filter((entry) => isFree(entry) && dueOf(entry) === 0)
            .map(({ n }) => n)
            .slice(0, 3),
          again: (ordered ? again : byDue).map(({ n }) => n).slice(0, 3),
        },
      )
    }
    const sinceOf = (isAgain: boolean): number | undefined =>
      waiting.find(({ forwards }) => (forwards.get(id)?.due !== undefined) === isAgain)?.forwards.get(id)
        ?.since
    const oldest = [sinceOf(false), sinceOf(true)].reduce((one, other) =>
      one === undefined || (other !== undefined && other < one) ? other : one,
    )
    same((await journal.counts()).get(id)?.oldest ?? undefined, oldest)
  }
  for (const each of filters) same([each, await numbersOf(journal, each)], [each, model.select(each, now)])
}

function sorted<Given extends { targets: string[] }>(given: Given): Given {
  return { ...given, targets: given.targets.toSorted() }
}

async function numbersOf(journal: Journal, filter: Filter): Promise<number[]> {
  const found: number[] = []
  for await (const { n } of journal.select(filter)) found.push(n)
  return found
}

/** The same of a journal as of the model. */
async function viewOf(journal: Journal) {
  const entries = await journal.after(0, 1000)
  const counts = [...(await journal.counts())]
    .map(([id, { waiting, succeeded, failed }]) => [id, { waiting, succeeded, failed }] as const)
    .filter(([, each]) => Object.values(each).some((n) => n > 0))
  return {
    entries,
    attempts: await Promise.all(entries.map(({ n }) => journal.attempts(n))),
    count: await journal.count(),
    counts: counts.toSorted(byKey),
    minutes: await journal.minutes(0, 4_000_000_000_000),
  }
}

describe('whatever happens to it, the journal is what the model is', () => {
  const sqlite = (commands: fc.Arbitrary<Command[]>, filters: fc.Arbitrary<Filter[]>, numRuns: number) =>
    fc.assert(
      fc.asyncProperty(commands, filters, async (some, each) => {
        await using opened = await open()
        await run(opened.sql, some, each)
      }),
      { numRuns },
    )

  it('on SQLite', async () => {
    expect.hasAssertions()
    await sqlite(fc.array(command, { maxLength: 30, size: 'max' }), fc.array(filter, { maxLength: 8 }), 100)
  })

  it('with a clock that is set back', async () => {
    expect.hasAssertions()
    const some = fc.oneof({ weight: 8, arbitrary: command }, { weight: 1, arbitrary: back })
    const filters: Filter[] = [{}, { status: 'failed' }, { status: 'failed attempt' }, { repo: 'octo/demo' }]
    await sqlite(fc.array(some, { maxLength: 30, size: 'max' }), fc.constant(filters), 60)
  })
})

describeWith('postgres', 'whatever happens to it, the journal is what the model is', () => {
  it('on PostgreSQL', async () => {
    expect.hasAssertions()
    await using server = await database()
    const store = new SharedStore(server.store, { password: new Secret(PASSWORD) })
    let profile = 0
    const commands = fc.array(command, { minLength: 20, maxLength: 40, size: 'max' })
    await fc.assert(
      fc.asyncProperty(commands, fc.array(filter, { minLength: 6, maxLength: 12 }), async (some, filters) => {
        await using sql = await openPostgres({ store, profile: `law-${profile++}` })
        await run(sql, some, filters)
      }),
      { numRuns: 4, endOnFailure: true },
    )
  })
})

const nowhere: Plan = { targets: [], onDuplicate: 'never' }
const at = (deliveryId: string, receivedAt: number): Delivery =>
  deliveryOf(deliveryId, { receivedAt, body: new Uint8Array() })

describe('a journal', () => {
  it('hides nothing of what came since the clock was wrong, and does not keep what is old', async () => {
    await using opened = await open()
    const journal = new Journal(opened.sql, { clock: () => START })
    const hour = 60 * MINUTE
    // 2 and 3 came while the clock was a day ahead, 5 while it was three hours behind.
    const times = [-3 * hour, 24 * hour, 24 * hour, -2 * hour, -3 * hour, 0]
    for (const [i, ms] of times.entries()) await journal.append(at(`${i}`, START + ms), nowhere)
    expect(await numbersOf(journal, { since: START - 2.5 * hour })).toEqual([6, 5, 4])
    expect(await numbersOf(journal, { since: Infinity })).toEqual([])
    expect(await journal.sweep({ keep: hour, keepMax: Infinity })).toBe(5)
    expect(await numbersOf(journal, {})).toEqual([6])
    expect(await journal.keptSince()).toBe(START)
    // The number of what was removed is not given again.
    expect(await journal.append(at('new', START), nowhere)).toMatchObject({ n: 7 })
  })

  it('is searched for letters of other alphabets as they are, and for A to Z in either case', async () => {
    await using opened = await open()
    const journal = new Journal(opened.sql, { clock: () => START })
    for (const [i, text] of ['あ', 'Zoë', 'ZOË', 'a.b'].entries())
      await journal.append({ ...at(`${i}`, START), body: new Uint8Array(Buffer.from(text)) }, nowhere)
    const found = async (text: string) => (await numbersOf(journal, { text })).toReversed()
    const all = await Promise.all(['あ', 'Á', 'zoë', 'zo', 'A.B', 'a?b'].map(found))
    expect(all).toEqual([[1], [], [2], [2, 3], [4], []])
  })

  it('and what takes too much room goes, the oldest first, but not what waits', async () => {
    await using opened = await open()
    const journal = new Journal(opened.sql, { clock: () => START })
    const body = new Uint8Array(100_000)
    for (let i = 0; i < 20; i++)
      await journal.append({ ...at(`${i}`, START), body }, { ...nowhere, targets: i === 3 ? ['a'] : [] })
    await journal.sweep({ keep: Infinity, keepMax: 1_000_000 })
    const left = await numbersOf(journal, {})
    expect([left.at(0), left.at(-1)]).toEqual([20, 4])
    expect(left.length).toBeLessThan(12)
    expect(await opened.sql.usedBytes()).toBeLessThan(1_100_000)
    expect(await journal.count()).toBe(left.length)
  })

  it('never lets attempts at one target fill the journal', async () => {
    await using opened = await open()
    const journal = new Journal(opened.sql)
    await journal.append(at('1', START), { ...nowhere, targets: ['a'] })
    const forward: Forward = { status: 'waiting', tries: 0, since: START }
    const common = { target: 'a', status: 500, ms: 1, answer: new Uint8Array(9000), error: 'e'.repeat(3000) }
    const retry = (at: number): Attempt => ({ ...common, at, outcome: 'retry', count: 1 })
    await Promise.all(Array.from({ length: 4100 }, (_, i) => journal.record(1, retry(i), forward)))
    const made = await journal.attempts(1)
    const sizes = [made.length, made.at(-1)?.at, made[0]?.answer.length, made[0]?.error?.length]
    expect(sizes).toEqual([4096, 4099, 4096, 1024])
    expect(await journal.next('a', { limit: 1, except: [], ordered: false })).toEqual({
      first: [{ n: 1, forward, isUnanswered: false }],
      again: [],
    })
    expect(await journal.readToSend('a', 1)).toEqual({ entry: await journal.read(1), earlier: 4096 })
    expect(await journal.readToSend('b', 1)).toMatchObject({ earlier: 0 })
  })

  it('announces to other relays the earlier entries that it changes, and asks for room for what it adds', async () => {
    await using db = await open()
    const written: unknown[] = []
    const write: Sql['write'] = (work, options) => {
      written.push(options)
      return db.sql.write(work, options)
    }
    const journal = new Journal(Object.assign(Object.create(db.sql), { write }))
    for (let times = 0; times < 2; times++)
      await journal.append(at('1', START), { ...nowhere, targets: ['a'] })
    await journal.flush()
    await journal.record(1, attempt('a'), succeeded)
    await journal.requeue(1, ['a'], 'always')
    await journal.expire(Infinity, { target: 'a' })
    const [added, changed, some] = [{ grows: 4096, announces: [] }, { announces: [1] }, { announces: [] }]
    expect(written).toEqual([added, added, changed, changed, changed, some, some])
  })

  it('refuses all that wait for a database that fails, at once', async () => {
    await using db = await open()
    let writes = 0
    const write = async (): Promise<never> => {
      writes++
      await Promise.resolve()
      throw new RelayError('storage', 'The disk is full')
    }
    const away: Sql = Object.assign(Object.create(db.sql), { write })
    const journal = new Journal(away)
    const appends = Array.from({ length: 200 }, (_, i) => journal.append(at(`${i}`, START), nowhere))
    const ended = await Promise.allSettled(appends)
    expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(['rejected']))
    expect(writes).toBe(1)
  })
})

/** Both engines match the words of a partial index, so these must be the ones that the journal asks with. */
const QUERIES = [
  `SELECT n FROM forward WHERE status = 'failed' AND n >= 1 AND n < 9`,
  `SELECT n FROM forward WHERE ${FAILED_ATTEMPT} AND n >= 1 AND n < 9`,
  `SELECT n FROM delivery WHERE n >= 1 AND n < 9 AND (n IN (SELECT n FROM forward WHERE ${FAILED_ATTEMPT} AND n >= 1 AND n < 9)) ORDER BY n DESC LIMIT 5`,
]

it('finds failed attempts through an index on SQLite', async () => {
  await using sql = await openSqlite(MEMORY)
  for (const query of QUERIES) {
    const plan = await sql.query<{ detail: string }>(`EXPLAIN QUERY PLAN ${query}`)
    expect(plan.map(({ detail }) => detail).join('\n')).toMatch(
      /SEARCH forward USING (?:COVERING )?INDEX forward_failed \(n>\? AND n<\?\)/,
    )
  }
})

describe('a match', () => {
  it.each([
    ['push', 'pushed', null, false],
    ['pull_request', 'pull_request_review', 'submitted', false],
    ['pull_request.opened', 'pull_request', 'reopened', false],
    ['pull_request.opened', 'pull_request', null, false],
    ['*.closed', 'issues', 'closed', true],
    ['*.closed', 'push', null, false],
    ['repository_dispatch.deploy.eu', 'repository_dispatch', 'deploy.eu', true],
    ['Push Hook', 'Push Hook', null, true],
    ['pullrequest:created', 'pullrequest:created', null, true],
  ])('%s, given %s and %s: %s', (text, event, action, expected) => {
    expect(matches(parseMatch(text), { event, action, provider: 'github' })).toBe(expected)
  })

  it.each([
    ['stripe/invoice.paid', 'invoice.paid', true],
    ['stripe/invoice', 'invoice.paid', true],
    ['stripe/invoice.*', 'invoice.paid', true],
    ['stripe/invoice.*', 'invoice', true],
    ['stripe/invoice.*', 'invoiceitem.created', false],
    ['stripe/invoice', 'invoiceitem.created', false],
    ['stripe/*', 'invoice.paid', true],
    ['slack/*', 'invoice.paid', false],
    ['stripe/orders/*', 'orders/create', true],
    ['stripe/Push Hook', 'Push Hook', true],
    ['stripe/repo:*', 'repo:push', true],
    ['stripe/repo:*', 'issue:created', false],
    ['*', 'invoice.paid', true],
    ['invoice.paid', 'invoice.paid', false],
    ['*.paid', 'invoice.paid', false],
  ])('%s, given %s of the source stripe: %s', (text, event, expected) => {
    expect(matches(parseMatch(text), { event, action: null, provider: 'stripe' })).toBe(expected)
  })

  it.each([
    '/push',
    'Stripe/x',
    'stripe/',
    'stripe//x',
    'stripe/a*b',
    'stripe/x ',
    'stripe/**',
    `${'a'.repeat(33)}/x`,
  ])('of a source is not: %j', (text) => expect(() => parseMatch(text)).toThrow('Invalid match'))

  it.each(['', '.', 'push.', '.opened', 'pu*', 'pull_*.opened', 'push.*ed', '**', 'a=b', ' push', 'push '])(
    'is not: %j',
    (text) => {
      const said = `Invalid match '${text}': write event or event.action, with * for all of a part`
      expect(() => parseMatch(text)).toThrow(new RelayError('usage', said))
    },
  )

  it('written from a delivery finds that delivery', () => {
    const name = fc.stringMatching(/^[a-z_]{1,8}$/)
    fc.assert(
      fc.property(name, fc.option(name), (event, action) => {
        const text = action === null ? event : `${event}.${action}`
        expect(parseMatch(text)).toEqual({ text })
        for (const wide of [text, event, `${event}.*`, '*', '*.*']) {
          expect(matches(parseMatch(wide), { event, action, provider: 'gitea' })).toBe(true)
        }
      }),
    )
  })
})
