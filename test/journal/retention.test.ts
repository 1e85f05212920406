import * as fc from 'fast-check'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { dedupeKey } from '../../src/journal/dedupe.js'
import { openJournal } from '../../src/journal/open.js'
import { sweep } from '../../src/journal/retention.js'
import { openTables } from '../../src/journal/tables.js'
import type { Database } from '../../src/store/database.js'
import { emptyFolder } from '../helpers/context.js'
import { start } from '../store/programs/start.js'
import { attempt, bodyOf, delivery, failed, KINDS, NOW, open, succeeded, waiting } from './rig.js'

const KEEP = 1000
const old = { receivedAt: NOW - KEEP - 1 }
const byAge = { keep: KEEP, keepMax: Infinity, now: NOW }
const bySize = (keepMax: number) => ({ keep: Infinity, keepMax, now: NOW })

const numbers = (database: Database): number[] => [...openJournal(database).summaries()].map(({ n }) => n)

/** How many rows each table has. */
const rows = (database: Database) =>
  Object.fromEntries(Object.entries(openTables(database)).map(([name, table]) => [name, table.count()]))

/** What each transaction writes, in rows. */
function counting(database: Database) {
  const writes: number[] = []
  const counted: Database = {
    ...database,
    transact: (decide) =>
      database.transact((transaction) => {
        const decision = decide(transaction)
        writes.push(decision.writes.length)
        return decision
      }),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
  return { counted, writes }
}

describe.each(KINDS)('the sweep of a %s database', (kind) => {
  it('removes what is too old with all that belongs to it, but nothing unfinished, and not the newest', async () => {
    await using database = await open(kind)
    const journal = openJournal(database, { targetsOf: ({ event }) => (event === 'push' ? ['a', 'b'] : []) })
    for (const id of ['1', '2', '3', '3']) await journal.append(delivery(id, old))
    await journal.append(delivery('4', { ...old, receivedAt: NOW - KEEP }))
    await journal.append(delivery('5', { ...old, event: 'ping' }))
    for (const n of [1, 2, 3, 4]) await journal.record(n, attempt('a'), succeeded)
    for (const n of [1, 3, 4]) await journal.record(n, attempt('b'), failed)
    expect(await sweep(database, byAge)).toEqual({ removed: 2 })
    expect(numbers(database)).toEqual([2, 4, 5])
    expect([1, 3].map((n) => [journal.read(n), journal.handOns(n), journal.attempts(n)])).toEqual(
      [1, 3].map(() => [undefined, {}, []]),
    )
    expect(rows(database)).toEqual({
      metas: 3,
      bodies: 3,
      numbers: 3,
      repeats: 0,
      handOns: 2,
      open: 1,
      attempts: 3,
    })
    await journal.record(1, attempt('a'), waiting)
    expect(await journal.append(delivery('3'))).toEqual({ n: 6, duplicate: false, targets: ['a', 'b'] })
    expect(await sweep(database, { ...byAge, now: NOW + 1 })).toEqual({ removed: 2 })
    expect(numbers(database)).toEqual([2, 6])
  })

  it('leaves a dedupe key that names another entry', async () => {
    await using database = await open(kind)
    const journal = openJournal(database)
    for (const id of ['1', '2']) await journal.append(delivery(id, old))
    const { numbers } = openTables(database)
    await database.commit([numbers.put(dedupeKey(delivery('1')), 2)])
    expect(await sweep(database, byAge)).toEqual({ removed: 1 })
    expect(await journal.append(delivery('1'))).toEqual({ n: 2, duplicate: true, targets: [] })
  })

  it('removes the oldest until the journal is no larger than wanted', async () => {
    await using database = await open(kind)
    const journal = openJournal(database, { targetsOf: ({ event }) => (event === 'wait' ? ['a'] : []) })
    const body = Buffer.alloc(100_000, 1)
    for (let i = 1; i <= 150; i++)
      await journal.append(delivery(`${i}`, { body, event: i === 3 ? 'wait' : 'push' }))
    const { removed } = await sweep(database, bySize(5_000_000))
    // Half of one is as much as pages and estimates may differ.
    expect(removed).toBeGreaterThanOrEqual(100)
    expect(removed).toBeLessThanOrEqual(103)
    expect(numbers(database)).toEqual([
      3,
      ...Array.from({ length: 149 - removed }, (_, i) => removed + 2 + i),
    ])
    const bytes = Object.values(openTables(database)).reduce((sum, table) => sum + table.bytes(), 0)
    expect(bytes).toBeLessThanOrEqual(5_000_000)
    expect(await sweep(database, bySize(5_000_000))).toEqual({ removed: 0 })
    await sweep(database, bySize(0))
    expect(numbers(database)).toEqual([3, 150])
  })

  it('counts answers for the size', async () => {
    await using database = await open(kind)
    const journal = openJournal(database, { targetsOf: () => ['a'] })
    const answer = Buffer.alloc(4096, 1)
    for (let n = 1; n <= 20; n++) {
      await journal.append(delivery(`${n}`))
      for (let i = 0; i < 10; i++) await journal.record(n, attempt('a', { answer }), succeeded)
    }
    const { removed } = await sweep(database, bySize(500_000))
    expect(numbers(database)).toEqual(Array.from({ length: 20 - removed }, (_, i) => removed + 1 + i))
    expect(removed).toBeGreaterThan(7)
    expect(removed).toBeLessThan(20)
  })

  it('takes short steps, also through an entry with very many attempts', async () => {
    await using database = await open(kind)
    const journal = openJournal(database, { targetsOf: () => ['a'] })
    for (let n = 1; n <= 120; n++) {
      await journal.append(delivery(`${n}`, old))
      await journal.finish(n, 'a', succeeded)
    }
    const { attempts } = openTables(database)
    await journal.record(60, attempt('a'), succeeded)
    const [row] = attempts.range()
    const more = Array.from({ length: 1000 }, (_, i) =>
      attempts.put(60 * 4096 + 1 + i, row?.value ?? Buffer.of()),
    )
    await database.commit(more)
    const { counted, writes } = counting(database)
    expect(await sweep(counted, byAge)).toEqual({ removed: 119 })
    expect([Math.max(...writes) <= 200, writes.length < 20, numbers(database)]).toEqual([true, true, [120]])
    expect(attempts.count()).toBe(0)
  })

  it('ends when it is aborted, after the step under way', async () => {
    await using database = await open(kind)
    const journal = openJournal(database)
    for (let i = 0; i < 200; i++) await journal.append(delivery(`${i}`, old))
    const stop = new AbortController()
    const sweeping = sweep(database, { ...byAge, signal: stop.signal })
    stop.abort()
    const { removed } = await sweeping
    expect(removed).toBeLessThanOrEqual(50)
    expect(journal.count()).toBe(200 - removed)
    expect(await sweep(database, { ...byAge, signal: stop.signal })).toEqual({ removed: 0 })
  })

  it('goes on while entries are read, which then end or leave out what is gone', async () => {
    await using database = await open(kind)
    const journal = openJournal(database)
    for (let i = 1; i <= 120; i++)
      await journal.append(delivery(`${i}`, { ...(i <= 100 && old), body: bodyOf(`${i}`) }))
    const seen: number[] = []
    for (const { n, body } of journal.entries({ reverse: true })) {
      if (n === 110) await sweep(database, byAge)
      expect(Buffer.compare(body, bodyOf(`${n}`))).toBe(0)
      seen.push(n)
    }
    expect(seen.slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, i) => 120 - i))
    expect(numbers(database)).toEqual(Array.from({ length: 20 }, (_, i) => 101 + i))
  })
})

describe('a sweep', () => {
  it('removes what a plain reading of the rules removes', async () => {
    const entry = fc.record({ age: fc.integer({ min: 0, max: 4 }), waits: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 130 }), async (entries) => {
        await using database = await open('memory')
        const journal = openJournal(database, { targetsOf: ({ event }) => (event === 'wait' ? ['a'] : []) })
        for (const [i, { age, waits }] of entries.entries()) {
          await journal.append(delivery(`${i}`, { receivedAt: NOW - age, event: waits ? 'wait' : 'push' }))
        }
        const young = entries.findIndex(({ age }) => age <= 2)
        const reached = young === -1 ? entries.length : young
        const left = entries.flatMap(({ waits }, i) =>
          i >= reached || waits || i === entries.length - 1 ? [i + 1] : [],
        )
        expect(await sweep(database, { ...byAge, keep: 2 })).toEqual({
          removed: entries.length - left.length,
        })
        expect(numbers(database)).toEqual(left)
      }),
    )
  })

  it('under load loses nothing that is young or unfinished, and disturbs nobody who reads', async () => {
    const folder = emptyFolder()
    await using database = await open('file', folder)
    const journal = openJournal(database, { targetsOf: ({ event }) => (event === 'wait' ? ['a'] : []) })
    await using one = start('journal/programs/read', [folder])
    await using two = start('journal/programs/read', [folder])
    await Promise.all([one.line(), two.line()])
    /** The clock: one delivery a millisecond, kept for 300. */
    let now = NOW
    const appended: { n: number; at: number; waits: boolean }[] = []
    const loads = Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let i = 0; i < 150; i++) {
          const at = ++now
          const waits = i % 10 === 0
          const more = { receivedAt: at, event: waits ? 'wait' : 'push', body: bodyOf(`${at}`) }
          const { n } = await journal.append(delivery(`${at}`, more))
          if (waits) await journal.record(n, attempt('a', { outcome: 'retry' }), waiting)
          appended.push({ n, at, waits })
        }
      }),
    )
    const loaded = loads.then(() => true)
    let removed = 0
    while (!(await Promise.race([loaded, setImmediate(false)])))
      removed += (await sweep(database, { keep: 300, keepMax: Infinity, now })).removed
    const left = new Set(numbers(database))
    expect(
      appended.filter(({ at, waits }) => at >= now - 300 || waits).filter(({ n }) => !left.has(n)),
    ).toEqual([])
    expect([left.size + removed, removed > 400]).toEqual([1200, true])
    for (const reader of [one, two]) {
      reader.tell('stop')
      const seen = JSON.parse(await reader.line())
      expect(seen).toMatchObject({ wrong: [] })
      expect(seen.passes).toBeGreaterThan(0)
    }
  })
})
