import { statSync } from 'node:fs'
import path from 'node:path'
import * as fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import type { Receipt } from '../../src/journal/delivery.js'
import type { OnDuplicate } from '../../src/journal/forward.js'
import { openJournal } from '../../src/journal/open.js'
import type { Sql, SqlRow } from '../../src/store/sql.js'
import { emptyFolder } from '../helpers/context.js'
import { collect, delivery, failed, KINDS, NOW, open, succeeded, waiting } from './rig.js'

afterEach(() => void vi.useRealTimers())

const first = (n: number): Receipt => ({ n, duplicate: false, targets: [] })
const again = (n: number): Receipt => ({ n, duplicate: true, targets: [] })

describe.each(KINDS)('a journal: %s', (kind) => {
  it('numbers deliveries 1, 2, 3 and gives back what it was given', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    expect(await journal.newest()).toBe(0)
    const deliveries = [
      delivery('a'),
      delivery('b', { number: null, repo: null, action: 'opened', ref: 'refs/heads/main', hookId: '' }),
      delivery('c', { verifiedBy: 'previous', restored: { how: 'compact', sha256: 'abc' }, event: 'a.b' }),
    ]
    for (const [i, one] of deliveries.entries()) expect(await journal.append(one)).toEqual(first(i + 1))
    const entries = deliveries.map((one, i) => ({ n: i + 1, ...one, duplicates: 0 }))
    for (const entry of entries) expect(await journal.read(entry.n)).toEqual(entry)
    expect(await journal.read(4)).toBeUndefined()
    expect(await journal.read(0)).toBeUndefined()
    expect(await journal.newest()).toBe(3)
    const summaries = entries.map(({ body, ...entry }) => ({ ...entry, size: body.length, forwards: {} }))
    expect(await collect(journal.select())).toEqual(summaries.toReversed())
    expect(await journal.after(0, 10)).toEqual(summaries)
    expect(await journal.after(1, 1)).toEqual([summaries[1]])
    expect(await journal.after(3, 10)).toEqual([])
    expect(await journal.summaries([3, 9, 1, 3])).toEqual([summaries[2], summaries[0], summaries[2]])
    expect(await journal.summaries([])).toEqual([])
  })

  it('keeps empty and large bodies byte for byte', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    const large = Uint8Array.from({ length: 1_048_576 }, (_, i) => (i * 31) % 256)
    await journal.append(delivery('empty', { body: new Uint8Array() }))
    await journal.append(delivery('large', { body: large }))
    expect((await journal.read(1))?.body).toEqual(new Uint8Array())
    expect(Buffer.compare((await journal.read(2))?.body ?? new Uint8Array(), large)).toBe(0)
    expect((await journal.summaries([1, 2])).map(({ size }) => size)).toEqual([0, 1_048_576])
  })

  it('gives back any headers, and payload fields of any text', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    const text = fc.string({ unit: 'grapheme', maxLength: 20 }).filter((one) => !one.includes('\0'))
    const some = fc.record({
      headers: fc.array(fc.tuple(fc.string(), fc.string())),
      action: fc.option(text),
      repo: fc.option(text),
      number: fc.option(fc.maxSafeNat()),
      event: text,
    })
    let n = 0
    await fc.assert(
      fc.asyncProperty(some, async (more) => {
        const given = delivery(`${++n}`, more)
        await journal.append(given)
        expect(await journal.read(n)).toEqual({ n, ...given, duplicates: 0 })
      }),
    )
  })

  it('counts a delivery that comes again on its entry, and stores one of many that come at once', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    const given = delivery('a')
    const receipts = await Promise.all(Array.from({ length: 50 }, () => journal.append(given)))
    expect(receipts.filter(({ duplicate }) => !duplicate)).toEqual([first(1)])
    expect(receipts.every(({ n }) => n === 1)).toBe(true)
    expect(await journal.append({ ...given, event: 'other', body: Buffer.from('other') })).toEqual(again(1))
    expect(await journal.append(delivery('b'))).toEqual(first(2))
    await journal.flush()
    expect(await journal.read(1)).toEqual({ n: 1, ...given, duplicates: 50 })
  })

  it('takes the same delivery id of another hook for another delivery', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    for (const [i, hookId] of ['1', '', '2'].entries())
      expect(await journal.append(delivery('a', { hookId }))).toMatchObject(first(i + 1))
  })

  it('knows what came through a tunnel by what was signed, whatever its id', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    const restored = { how: 'compact', sha256: 'abc' }
    expect(await journal.append(delivery('a', { restored }))).toEqual(first(1))
    expect(await journal.append(delivery('b', { restored }))).toEqual(again(1))
    expect(await journal.append(delivery('a'))).toEqual(first(2))
  })

  it('takes equal bytes without time or id for new under another id, but not within a minute', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    const restored = { how: 'compact', sha256: 'abc', repeatable: true } as const
    const press = (id: string, seconds: number) =>
      journal.append(delivery(id, { event: 'ping', restored, receivedAt: NOW + seconds * 1000 }))
    expect(await press('a', 0)).toEqual(first(1))
    expect(await press('copy', 1)).toEqual(again(1))
    expect(await press('copy', 60)).toEqual(again(1))
    expect(await press('b', 60.001)).toEqual(first(2))
    expect(await press('a', 61)).toEqual(again(1))
    expect(await press('a', 3600)).toEqual(again(1))
    const copies = Array.from({ length: 20 }, (_, i) => press(`copy ${i}`, 3600))
    const receipts = await Promise.all(copies)
    expect(receipts).toEqual([first(3), ...Array.from({ length: 19 }, () => again(3))])
    const other = { ...restored, sha256: 'abcd' }
    expect(await journal.append(delivery('c', { restored: other }))).toEqual(first(4))
  })

  it('is recorded with the rule that ignored it', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, {
      ignoredBy: ({ event }) => (event === 'issues' ? 'issues.*' : undefined),
    })
    const ignored = { n: 1, targets: [], ignoredBy: 'issues.*' }
    const given = delivery('a', { event: 'issues' })
    expect(await journal.append(given)).toEqual({ ...ignored, duplicate: false })
    expect(await journal.append(given)).toEqual({ ...ignored, duplicate: true })
    expect(await journal.append(delivery('b'))).toEqual(first(2))
    expect(await journal.read(1)).toMatchObject({ event: 'issues', ignoredBy: 'issues.*' })
    const summaries = await journal.summaries([1, 2])
    expect(summaries.map(({ ignoredBy }) => ignoredBy)).toEqual(['issues.*', undefined])
  })

  it('is not forwarded if another hook brought the same event before', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, { targetsOf: () => ['a'], onDuplicate: 'always' })
    const from = (hookId: string, more = {}) => journal.append(delivery('guid', { hookId, ...more }))
    const forwarded = (n: number) => ({ n, duplicate: false, targets: ['a'] })
    const known = { targets: [], ignoredBy: '#1' }
    expect(await from('1')).toEqual(forwarded(1))
    expect(await from('2')).toEqual({ n: 2, duplicate: false, ...known })
    expect(await from('2')).toEqual({ n: 2, duplicate: true, ...known })
    await journal.finish(1, 'a', succeeded)
    expect(await from('1')).toEqual({ ...forwarded(1), duplicate: true })
    expect(await from('3', { restored: { how: 'compact', sha256: 'abc' } })).toEqual({
      n: 3,
      duplicate: false,
      ...known,
    })
    // Under an id that is not signed, something else came.
    const others = [
      { event: 'issues' },
      { action: 'x' },
      { repo: 'x/y' },
      { number: 99 },
      { deliveryId: 'x' },
    ]
    for (const [i, other] of others.entries())
      expect(await from(`other ${i}`, other)).toEqual(forwarded(4 + i))
    expect(await from('')).toEqual(forwarded(9))
    expect(await journal.append(delivery('curl', { hookId: '' }))).toEqual(forwarded(10))
    expect(await from('5', { deliveryId: 'curl' })).toEqual(forwarded(11))
    expect((await journal.read(2))?.ignoredBy).toBe('#1')
  })

  it('is not led to other targets by a copy under another event or action', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, {
      targetsOf: ({ event, action }) => [`${event}.${action}`],
      onDuplicate: 'always',
    })
    const given = delivery('a', { event: 'issues', action: 'opened' })
    const targets = ['issues.opened']
    await journal.append(given)
    await journal.append({ ...given, event: 'push' })
    await journal.append({ ...given, action: 'closed' })
    expect(await journal.append({ ...given, action: null })).toEqual({ n: 1, duplicate: true, targets })
    expect(await journal.forwards(1)).toEqual({ 'issues.opened': waiting })
    await journal.finish(1, 'issues.opened', succeeded)
    expect(await journal.append({ ...given, event: 'push' })).toEqual(again(1))
    expect(await journal.append(given)).toEqual({ n: 1, duplicate: true, targets })
  })
})

describe.each(['file', 'thread'] as const)('a journal: %s', (kind) => {
  it('writes duplicates once a second', async () => {
    const folder = emptyFolder()
    await using database = await open(kind, folder)
    const journal = openJournal(database.sql, { targetsOf: () => ['a'] })
    await journal.append(delivery('a'))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const appendAgain = async (): Promise<void> => {
      expect(await journal.append(delivery('a'))).toEqual({ n: 1, duplicate: true, targets: ['a'] })
    }
    await appendAgain()
    await journal.flush()
    const written = (): number => statSync(path.join(folder, 'relay.db-wal')).size
    const before = written()
    for (let i = 0; i < 20; i++) await appendAgain()
    expect(written()).toBe(before)
    vi.advanceTimersByTime(1000)
    await journal.flush()
    expect((await journal.read(1))?.duplicates).toBe(21)
    expect(written()).toBeGreaterThan(before)
  })

  it('continues with numbers and duplicates after a restart', async () => {
    const folder = emptyFolder()
    {
      await using database = await open(kind, folder)
      const journal = openJournal(database.sql)
      for (const id of ['a', 'b', 'a']) await journal.append(delivery(id))
      await journal.flush()
    }
    await using database = await open(kind, folder)
    const journal = openJournal(database.sql)
    expect(await journal.append(delivery('a'))).toEqual(again(1))
    expect(await journal.append(delivery('c'))).toEqual(first(3))
    await journal.flush()
    expect((await journal.after(0, 9)).map(({ n, duplicates }) => [n, duplicates])).toEqual([
      [1, 2],
      [2, 0],
      [3, 0],
    ])
  })

  it('gives no number twice when two append at once', async () => {
    const folder = emptyFolder()
    await using one = await open(kind, folder)
    await using other = await open(kind, folder)
    const [even, odd] = [openJournal(one.sql), openJournal(other.sql)]
    const receipts = await Promise.all(
      Array.from({ length: 200 }, (_, i) => (i % 2 ? odd : even).append(delivery(`${i >> 2}`))),
    )
    expect(receipts.filter(({ duplicate }) => !duplicate)).toHaveLength(50)
    await Promise.all([even.flush(), odd.flush()])
    const entries = await even.after(0, 100)
    expect(entries.map(({ n }) => n)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1))
    expect(new Set(entries.map(({ deliveryId }) => deliveryId)).size).toBe(50)
    expect(entries.map(({ duplicates }) => duplicates)).toEqual(entries.map(() => 3))
  })
})

describe('what comes again', () => {
  const target = fc.constantFrom('a', 'b', 'c', '__proto__', '1', 'toString', '', 'é😀')
  const rule = fc.constantFrom<OnDuplicate>('never', 'if-failed', 'always')
  const arrival = fc.record({ targets: fc.array(target, { maxLength: 5 }), rule })
  const finish = fc.record({ target, forward: fc.constantFrom(succeeded, failed) })

  /** What the rules promise, target by target. */
  const isDue: Record<OnDuplicate, (before: string | undefined) => boolean> = {
    never: () => false,
    'if-failed': (before) => before === undefined || before === 'failed',
    always: (before) => before !== 'waiting',
  }

  it('is forwarded as the rule says, whatever happened before', async () => {
    const first = fc.array(target, { maxLength: 5 })
    const steps = fc.array(fc.oneof(arrival, finish), { maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(first, steps, async (targets, steps) => {
        await using database = await open('memory')
        const forwards = new Map([...new Set(targets)].map((one) => [one, waiting]))
        await openJournal(database.sql, { targetsOf: () => targets }).append(delivery('1'))
        for (const [i, step] of steps.entries()) {
          if ('forward' in step) {
            if (forwards.has(step.target)) forwards.set(step.target, step.forward)
            await openJournal(database.sql).finish(1, step.target, step.forward)
            continue
          }
          const since = NOW + i
          const journal = openJournal(database.sql, {
            targetsOf: () => step.targets,
            onDuplicate: step.rule,
          })
          const receipt = await journal.append(delivery('1', { receivedAt: since }))
          for (const one of step.targets)
            if (isDue[step.rule](forwards.get(one)?.status)) forwards.set(one, { ...waiting, since })
          const waits = [...forwards].flatMap(([one, { status }]) => (status === 'waiting' ? [one] : []))
          expect({ ...receipt, targets: receipt.targets.toSorted() }).toEqual({
            n: 1,
            duplicate: true,
            targets: waits.toSorted(),
          })
        }
        expect(new Map(Object.entries(await openJournal(database.sql).forwards(1)))).toEqual(forwards)
      }),
      { numRuns: 200 },
    )
  })
})

/** A database whose writes can be made to fail: at once, or past their time, when they have been carried out after all. */
function breakable(sql: Sql) {
  let mode: 'works' | 'fails' | 'is late' = 'works'
  const late: (() => void)[] = []
  const broken: Sql = {
    query: (text, values) => sql.query(text, values),
    async transaction(steps, options) {
      if (mode === 'works') return sql.transaction(steps, options)
      if (mode === 'is late') {
        const rows: readonly (readonly SqlRow[])[] = (await sql.transaction(steps, options)) ?? []
        late.push(() => options?.onLate?.(rows))
      }
      throw new RelayError('storage', 'no room')
    },
    usedBytes: () => sql.usedBytes(),
    shrink: () => sql.shrink(),
    [Symbol.asyncDispose]: () => sql[Symbol.asyncDispose](),
  }
  return { broken, now: (next: typeof mode) => void (mode = next), late }
}

describe('a journal whose database fails', () => {
  it('says so to all that wait, and stores the delivery when it comes again', async () => {
    await using database = await open('memory')
    const { broken, now } = breakable(database.sql)
    const journal = openJournal(broken, { targetsOf: () => ['a'] })
    now('fails')
    const outcomes = await Promise.allSettled(Array.from({ length: 3 }, () => journal.append(delivery('a'))))
    for (const outcome of outcomes)
      expect(outcome).toEqual({ status: 'rejected', reason: new RelayError('storage', 'no room') })
    await expect(journal.finish(1, 'a', failed)).rejects.toThrow('no room')
    await expect(journal.check()).rejects.toThrow('no room')
    now('works')
    expect(await collect(journal.select())).toEqual([])
    expect(await journal.append(delivery('a'))).toEqual({ ...first(1), targets: ['a'] })
  })

  it('knows a delivery again whose write landed after its time, and says that it did', async () => {
    await using database = await open('memory')
    const { broken, now, late } = breakable(database.sql)
    const journal = openJournal(broken, { targetsOf: () => ['a'] })
    now('is late')
    const receipts: Receipt[] = []
    await expect(
      journal.append(delivery('a'), { onLate: (receipt) => receipts.push(receipt) }),
    ).rejects.toThrow('no room')
    now('works')
    for (const report of late) report()
    expect(receipts).toEqual([{ ...first(1), targets: ['a'], late: true }])
    expect(await journal.append(delivery('b'))).toEqual({ ...first(2), targets: ['a'] })
    expect(await journal.append(delivery('a'))).toEqual({ ...again(1), targets: ['a'] })
  })
})

describe.each(KINDS)('a guarded journal: %s', (kind) => {
  it('is written while its guard holds; after that nothing is, and the reason is passed on', async () => {
    await using database = await open(kind)
    await database.store.put('instance', 1)
    const refused = new RelayError('conflict', 'another has it')
    const journal = openJournal(database.sql, {
      targetsOf: () => ['a'],
      guard: {
        statement: () => ({ sql: `SELECT 1 FROM kv WHERE key = 'instance'`, required: true }),
        refuse: () => Promise.reject(refused),
      },
    })
    expect(await journal.append(delivery('1'))).toEqual({ ...first(1), targets: ['a'] })
    await journal.finish(1, 'a', succeeded)
    expect(await journal.append(delivery('2'))).toEqual({ ...first(2), targets: ['a'] })
    await journal.check()
    expect(await database.store.list('')).toEqual(['instance'])
    await database.store.delete('instance')
    const late: Receipt[] = []
    const writes = [
      () => journal.check(),
      () => journal.append(delivery('3'), { onLate: (receipt) => late.push(receipt) }),
      () => journal.append(delivery('1')),
      () => journal.finish(2, 'a', failed),
      () => journal.sweep({ keep: 0, keepMax: 0, now: NOW + 1 }),
    ]
    for (const write of writes) await expect(write()).rejects.toBe(refused)
    expect(late).toEqual([])
    expect(
      (await journal.after(0, 9)).map(({ n, duplicates, forwards }) => [n, duplicates, forwards]),
    ).toEqual([
      [1, 0, { a: succeeded }],
      [2, 0, { a: waiting }],
    ])
  })
})
