import * as fc from 'fast-check'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Journal } from '../../src/journal/journal.js'
import { openJournal } from '../../src/journal/open.js'
import type { Sql } from '../../src/store/sql.js'
import { emptyFolder } from '../helpers/context.js'
import { start } from '../store/programs/start.js'
import { attempt, bodyOf, delivery, failed, KINDS, NOW, numbers, open, succeeded, waiting } from './rig.js'

const KEEP = 1000
const old = { receivedAt: NOW - KEEP - 1 }
const byAge = { keep: KEEP, keepMax: Infinity, now: NOW }
const bySize = (keepMax: number) => ({ keep: Infinity, keepMax, now: NOW })
const waits = { targetsOf: ({ event }: { readonly event: string }) => (event === 'wait' ? ['a'] : []) }

/** How many rows each table has. */
async function rows(sql: Sql): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const table of ['delivery', 'body', 'forward', 'attempt']) {
    const [row] = await sql.query<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)
    counts[table] = row?.count ?? 0
  }
  return counts
}

async function appendAll(
  journal: Journal,
  count: number,
  more: Parameters<typeof delivery>[1] = {},
): Promise<void> {
  for (let i = 0; i < count; i += 100) {
    const ids = Array.from({ length: Math.min(100, count - i) }, (_, j) => `${i + j + 1}`)
    await Promise.all(ids.map((id) => journal.append(delivery(id, more))))
  }
}

describe.each(KINDS)('the sweep of a journal: %s', (kind) => {
  it('removes what is too old with all that belongs to it, but nothing unfinished, and not the newest', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, {
      targetsOf: ({ event }) => (event === 'push' ? ['a', 'b'] : []),
    })
    for (const id of ['1', '2', '3', '3']) await journal.append(delivery(id, old))
    await journal.append(delivery('4', { ...old, receivedAt: NOW - KEEP }))
    await journal.append(delivery('5', { ...old, event: 'ping' }))
    for (const n of [1, 2, 3, 4]) await journal.record(n, attempt('a'), succeeded)
    for (const n of [1, 3, 4]) await journal.record(n, attempt('b'), failed)
    expect(await journal.sweep(byAge)).toBe(2)
    expect(await numbers(journal)).toEqual([2, 4, 5])
    for (const n of [1, 3])
      expect([await journal.read(n), await journal.forwards(n), await journal.attempts(n)]).toEqual([
        undefined,
        {},
        [],
      ])
    expect(await rows(database.sql)).toEqual({ delivery: 3, body: 3, forward: 4, attempt: 3 })
    await journal.record(1, attempt('a'), waiting)
    expect(await journal.append(delivery('3'))).toEqual({ n: 6, duplicate: false, targets: ['a', 'b'] })
    expect(await journal.sweep({ ...byAge, now: NOW + 1 })).toBe(2)
    expect(await numbers(journal)).toEqual([2, 6])
  })

  it('goes by the clock of ages, and stops at the first that is young by it', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    const at = [NOW - KEEP - 1, NOW - KEEP, NOW + 5000, NOW + 10, NOW]
    for (const [i, receivedAt] of at.entries()) await journal.append(delivery(`${i}`, { receivedAt }))
    expect(await journal.sweep({ ...byAge, wall: NOW + 1000 })).toBe(1)
    expect(await numbers(journal)).toEqual([2, 3, 4, 5])
    // The third is from the future and hides nothing; the last is the newest.
    const later = NOW + KEEP + 11
    expect(await journal.sweep({ ...byAge, now: later, wall: later })).toBe(3)
    expect(await numbers(journal)).toEqual([5])
  })

  it('takes nothing for old that comes while it runs', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    await appendAll(journal, 3, old)
    let came = 0
    const busy: Sql = {
      ...database.sql,
      async query(text, values) {
        const rows = await database.sql.query<never>(text, values)
        await journal.append(delivery(`new ${came++}`))
        return rows
      },
    }
    expect(await openJournal(busy).sweep(byAge)).toBe(3)
    expect(came).toBeGreaterThan(2)
    expect(await numbers(journal)).toEqual(Array.from({ length: came }, (_, i) => 4 + i))
  })

  it('keeps the numbers going when all is removed', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    await appendAll(journal, 3, old)
    await journal.sweep(byAge)
    expect(await numbers(journal)).toEqual([3])
    expect((await journal.append(delivery('4'))).n).toBe(4)
    await journal.sweep(byAge)
    expect((await journal.append(delivery('1'))).n).toBe(5)
  })

  it('removes the oldest until the database is no larger than wanted, and hardly more', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, waits)
    const body = Buffer.alloc(100_000, 1)
    for (let i = 1; i <= 150; i++)
      await journal.append(delivery(`${i}`, { body, event: i === 3 ? 'wait' : 'push' }))
    expect(await database.sql.usedBytes()).toBeGreaterThan(15_000_000)
    const removed = await journal.sweep(bySize(5_000_000))
    const left = Array.from({ length: 149 - removed }, (_, i) => removed + 2 + i)
    expect(await numbers(journal)).toEqual([3, ...left])
    const used = await database.sql.usedBytes()
    expect(used).toBeLessThanOrEqual(5_000_000)
    expect(used).toBeGreaterThan(4_700_000)
    expect(await journal.sweep(bySize(5_000_000))).toBe(0)
    await journal.sweep(bySize(0))
    expect(await numbers(journal)).toEqual([3, 150])
  })

  it('counts answers for the size', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, { targetsOf: () => ['a'] })
    const answer = Buffer.alloc(4096, 1)
    for (let n = 1; n <= 20; n++) {
      await journal.append(delivery(`${n}`))
      for (let at = 0; at < 20; at++) await journal.record(n, attempt('a', { answer, at }), succeeded)
    }
    const before = await database.sql.usedBytes()
    await journal.sweep(bySize(before / 2))
    expect(await database.sql.usedBytes()).toBeLessThanOrEqual(before / 2)
    const left = (await numbers(journal)).length
    expect([left > 0, left < 20]).toEqual([true, true])
  })

  it('goes through more entries than one step takes, and leaves short steps between others’ writes', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, waits)
    await appendAll(journal, 2100, old)
    await journal.append(delivery('wait', { ...old, event: 'wait' }))
    await journal.append(delivery('new'))
    const seen: number[] = []
    const counted: Sql = {
      ...database.sql,
      async transaction(steps, options) {
        const all = await database.sql.transaction(steps, options)
        seen.push(all?.at(-1)?.length ?? 0)
        return all
      },
    }
    expect(await openJournal(counted).sweep(byAge)).toBe(2100)
    expect(await numbers(journal)).toEqual([2101, 2102])
    expect(Math.max(...seen)).toBeLessThanOrEqual(500)
    expect(seen.reduce((sum, count) => sum + count)).toBe(2100)
  })

  it('ends when it is aborted, after the step under way', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    await appendAll(journal, 1100, old)
    const stop = new AbortController()
    const sweeping = journal.sweep({ ...byAge, signal: stop.signal })
    stop.abort()
    const removed = await sweeping
    expect(removed).toBeLessThanOrEqual(500)
    expect(await numbers(journal)).toHaveLength(1100 - removed)
    expect(await journal.sweep({ ...byAge, signal: stop.signal })).toBe(0)
  })
})

describe('a sweep', () => {
  it('removes what a plain reading of the rules removes', async () => {
    const entry = fc.record({ age: fc.integer({ min: 0, max: 4 }), waits: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 60, size: 'max' }), async (entries) => {
        await using database = await open('memory')
        const journal = openJournal(database.sql, waits)
        await Promise.all(
          entries.map(({ age, waits }, i) =>
            journal.append(delivery(`${i}`, { receivedAt: NOW - age, event: waits ? 'wait' : 'push' })),
          ),
        )
        const young = entries.findIndex(({ age }) => age <= 2)
        const reached = young === -1 ? entries.length : young
        const left = entries.flatMap(({ waits }, i) =>
          i >= reached || waits || i === entries.length - 1 ? [i + 1] : [],
        )
        expect(await journal.sweep({ ...byAge, keep: 2 })).toBe(entries.length - left.length)
        expect(await numbers(journal)).toEqual(left)
      }),
    )
  })

  it.each(['file', 'thread'] as const)(
    'under load loses nothing that is young or unfinished, and disturbs no reader: %s',
    async (kind) => {
      const folder = emptyFolder()
      await using database = await open(kind, folder)
      const journal = openJournal(database.sql, waits)
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
      ).then(() => true)
      let removed = 0
      // A query in this thread leaves no time to anything else.
      while (!(await Promise.race([loads, setImmediate(false)])))
        removed += await journal.sweep({ keep: 300, keepMax: Infinity, now })
      await loads
      removed += await journal.sweep({ keep: 300, keepMax: Infinity, now })
      const left = new Set(await numbers(journal))
      const kept = appended.filter(({ at, waits }) => at >= now - 300 || waits)
      expect(kept.filter(({ n }) => !left.has(n))).toEqual([])
      expect([left.size + removed, removed > 400]).toEqual([1200, true])
      for (const reader of [one, two]) {
        reader.tell('stop')
        const seen = JSON.parse(await reader.line())
        expect(seen).toMatchObject({ wrong: [] })
        expect(seen.passes).toBeGreaterThan(0)
      }
    },
  )
})
