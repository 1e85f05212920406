import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Delivery, Summary } from '../../src/journal/delivery.js'
import type { Forward } from '../../src/journal/forward.js'
import type { Journal } from '../../src/journal/journal.js'
import { matches, parseMatch } from '../../src/journal/match.js'
import { openJournal } from '../../src/journal/open.js'
import { DELIVERY_STATUSES, type DeliveryStatus, type Filter } from '../../src/journal/select.js'
import type { Sql } from '../../src/store/sql.js'
import { attempt, collect, delivery, failed, KINDS, NOW, open, succeeded, waiting } from './rig.js'

interface Given extends Partial<Delivery> {
  readonly forwards: Readonly<Record<string, Forward>>
}

/** A journal of these entries, oldest first. */
async function journalOf(sql: Sql, entries: readonly Given[]): Promise<Journal> {
  const journal = openJournal(sql, { clock: () => NOW })
  const all = entries.entries()
  await Promise.all(
    Array.from(all, async ([i, { forwards, ...more }]) => {
      const appending = openJournal(sql, { targetsOf: () => Object.keys(forwards) })
      await appending.append(delivery(`${i}`, more))
      for (const [target, forward] of Object.entries(forwards)) await journal.finish(i + 1, target, forward)
    }),
  )
  return journal
}

const someEntry: fc.Arbitrary<Given> = fc.record({
  event: fc.constantFrom('push', 'issues', 'a.b', 'a', 'a.b.c', '*'),
  action: fc.constantFrom(null, 'opened', 'closed', 'c', 'b.c'),
  repo: fc.constantFrom(null, 'octo/demo', 'Octo/Demo', 'octo/other'),
  // In disorder, but less than a minute.
  receivedAt: fc.integer({ min: NOW - 59_000, max: NOW }),
  body: fc
    .constantFrom('{}', '{"a":"Needle"}', '{"a":"100% of_it"}', String.raw`{"a":"x\ny"}`)
    .map((text) => Buffer.from(text)),
  forwards: fc.constantFrom({}, { a: failed, b: waiting }, { a: succeeded }, { a: failed, b: failed }),
})
const someMatch = fc
  .constantFrom(
    'push',
    'issues.opened',
    '*.closed',
    '*',
    '*.*',
    'issues.*',
    'a.b',
    'a.b.c',
    'a.*',
    '*.c',
    'x',
  )
  .map(parseMatch)
const someFilter: fc.Arbitrary<Filter> = fc.record(
  {
    events: fc.array(someMatch, { maxLength: 3 }),
    repo: fc.constantFrom('octo/demo', 'OCTO/other', 'none/at-all'),
    since: fc.oneof(fc.integer({ min: NOW - 60_000, max: NOW + 1 }), fc.constantFrom(-Infinity, Infinity)),
    status: fc.constantFrom(...DELIVERY_STATUSES),
    until: fc.integer({ min: NOW - 60_000, max: NOW + 1 }),
    text: fc.constantFrom('needle', 'NEEDLE', '100%', '%', '_', String.raw`\n`, 'nowhere'),
    last: fc.oneof(fc.nat(5), fc.constant(Infinity)),
    before: fc.integer({ min: -1, max: 40 }),
  },
  { requiredKeys: [] },
)

function statusesOf(forwards: Given['forwards']): readonly DeliveryStatus[] {
  const all = Object.values(forwards).map(({ status }) => status)
  if (all.length === 0) return ['none']
  return all.every((status) => status === 'succeeded') ? ['succeeded'] : all
}

/** The numbers that are promised, one condition after the other. */
function naive(entries: readonly Given[], filter: Filter): number[] {
  const { events = [], repo, since, until, status: wanted, text, last, before = Infinity } = filter
  let left = entries.map(({ forwards, ...more }, i) => ({ n: i + 1, forwards, ...delivery(`${i}`, more) }))
  left = left.toReversed().filter(({ n }) => n < before)
  if (events.length > 0) left = left.filter((one) => events.some((match) => matches(match, one)))
  if (repo !== undefined) left = left.filter((one) => one.repo?.toLowerCase() === repo.toLowerCase())
  if (since !== undefined) left = left.filter((one) => one.receivedAt >= since)
  if (until !== undefined) left = left.filter((one) => one.receivedAt < until)
  if (wanted !== undefined) left = left.filter(({ forwards }) => statusesOf(forwards).includes(wanted))
  if (text !== undefined)
    left = left.filter(({ body }) => Buffer.from(body).toString().toLowerCase().includes(text.toLowerCase()))
  return left.slice(0, last).map(({ n }) => n)
}

const found = async (journal: Journal, filter: Filter): Promise<number[]> =>
  (await collect(journal.select(filter))).map(({ n }) => n)

describe('select', () => {
  it('gives what a plain filter gives', async () => {
    const entries = fc.array(someEntry, { maxLength: 40, size: 'max' })
    await fc.assert(
      fc.asyncProperty(
        entries,
        fc.array(someFilter, { minLength: 10, maxLength: 10 }),
        async (given, filters) => {
          await using database = await open('memory')
          const journal = await journalOf(database.sql, given)
          for (const filter of filters)
            expect([filter, await found(journal, filter)]).toEqual([filter, naive(given, filter)])
        },
      ),
      { numRuns: 150 },
    )
  }, 60_000)

  const HOUR = 3_600_000
  it.each<[string, number[], number[]]>([
    ['a clock that was set back for a while', [-3, 0, -2, -1, 0], [5, 4, 3, 2]],
    ['a clock that was just set back', [-3, -2, 24, 25, 0], [5, 4, 3]],
    ['a clock that was set back long ago', [-3, 24, -2, -1, 0], [5]],
    ['a clock that was set ahead for a while', [-1, 24, 24, 0], [4, 3, 2]],
    ['a clock that began in 1970', [-3, -470_000, -2, 0], [4]],
    ['nothing young', [-3, -2, -1], []],
    ['nothing at all', [], []],
  ])('goes by the numbers where times are wrong: %s', async (_, hours, numbers) => {
    await using database = await open('memory')
    const entries = hours.map((hour) => ({ receivedAt: NOW + hour * HOUR, forwards: {} }))
    const journal = await journalOf(database.sql, entries)
    expect(await found(journal, { since: NOW - 600_000 })).toEqual(numbers)
  })

  it('takes a match with very many dots, and very many matches', async () => {
    await using database = await open('memory')
    const event = Array.from({ length: 90 }, () => 'a').join('.')
    const journal = await journalOf(database.sql, [{ event, forwards: {} }, { forwards: {} }])
    expect(await found(journal, { events: [parseMatch(event)] })).toEqual([1])
    const events = Array.from({ length: 600 }, (_, i) => parseMatch(`event${i}.opened`))
    expect(await found(journal, { events })).toEqual([])
    expect(await found(journal, { events: [...events, parseMatch('push')] })).toEqual([2])
  })
})

describe.each(KINDS)('select: %s', (kind) => {
  it('reads no bodies, and gives all that is known without them', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, { targetsOf: () => ['a'] })
    for (const id of ['1', '2', '3', '2']) await journal.append(delivery(id))
    await journal.flush()
    await journal.record(2, attempt('a', { outcome: 'refused', status: 404 }), failed)
    await database.sql.transaction([{ sql: 'DELETE FROM body' }])
    const { body, ...rest } = delivery('2')
    const summary: Summary = { n: 2, ...rest, size: body.length, duplicates: 1, forwards: { a: failed } }
    expect(await collect(journal.select({ status: 'failed' }))).toEqual([summary])
    expect(await found(journal, {})).toEqual([3, 2, 1])
    expect(await journal.read(2)).toBeUndefined()
  })

  it('gives any number of entries, newest first, and only as far as it is iterated', async () => {
    await using database = await open(kind)
    let queries = 0
    const counted: Sql = {
      ...database.sql,
      query: (...call) => {
        queries++
        return database.sql.query(...call)
      },
    }
    const entries = Array.from({ length: 700 }, (_, i) => ({
      event: i % 7 === 0 ? 'rare' : 'push',
      forwards: i % 2 === 0 ? { a: failed } : {},
    }))
    await journalOf(database.sql, entries)
    const journal = openJournal(counted)
    const all = Array.from({ length: 700 }, (_, i) => 700 - i)
    expect(await found(journal, {})).toEqual(all)
    expect(await found(journal, { last: 300, before: 650 })).toEqual(all.slice(51, 351))
    expect(await found(journal, { status: 'failed' })).toEqual(all.filter((n) => n % 2 === 1))
    const events = [parseMatch('rare')]
    expect(await found(journal, { events, status: 'none', last: 3 })).toEqual([694, 680, 666])
    expect((await journal.after(100, 500)).map(({ n }) => n)).toEqual(all.toReversed().slice(100, 600))
    queries = 0
    for await (const { n } of journal.select()) if (n === 690) break
    const partly = queries
    queries = 0
    await found(journal, {})
    expect(partly * 2).toBeLessThan(queries)
    queries = 0
    expect(await found(journal, { last: 0 })).toEqual([])
    expect(queries).toBe(0)
  })

  it('lets entries come and go while it is iterated', async () => {
    await using database = await open(kind)
    const journal = await journalOf(
      database.sql,
      Array.from({ length: 600 }, () => ({ forwards: {} })),
    )
    const seen: number[] = []
    for await (const { n } of journal.select()) {
      if (n === 600) await journal.append(delivery('new'))
      if (n === 400) await journal.sweep({ keep: 0, keepMax: Infinity, now: NOW + 1 })
      seen.push(n)
    }
    const swept = seen.findIndex((n, i) => n !== 600 - i)
    expect(swept).toBe(-1)
    expect(seen.length).toBeGreaterThan(200)
    expect(seen.length).toBeLessThan(600)
  })
})
