import { describe, expect, it } from 'vitest'
import type { Attempt, Forwards } from '../../src/journal/forward.js'
import { openJournal } from '../../src/journal/open.js'
import { emptyFolder } from '../helpers/context.js'
import { attempt, collect, delivery, failed, KINDS, NOW, open, succeeded, waiting } from './rig.js'

const to = (...targets: string[]) => ({ targetsOf: () => targets })
const LATER = NOW + 60_000
const refused = (target: string, at: number, more: Partial<Attempt> = {}) =>
  attempt(target, { outcome: 'unreachable', status: null, error: 'ECONNREFUSED', at, ...more })

describe.each(KINDS)('the forwarding of entries: %s', (kind) => {
  it('begins with the entry, in the order of the routes', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, {
      targetsOf: ({ event }) => (event === 'push' ? ['b', 'a', 'c', 'b'] : []),
    })
    const targets = ['b', 'a', 'c']
    expect(await journal.append(delivery('1'))).toEqual({ n: 1, duplicate: false, targets })
    expect(await journal.append(delivery('2', { event: 'ping' }))).toEqual({
      n: 2,
      duplicate: false,
      targets: [],
    })
    await journal.append(delivery('3'))
    expect(await collect(journal.waiting())).toEqual(
      [1, 3].flatMap((n) => targets.map((target) => ({ n, target, forward: waiting }))),
    )
    expect(Object.keys(await journal.forwards(1))).toEqual(targets)
    expect(await journal.forwards(1)).toEqual({ a: waiting, b: waiting, c: waiting })
    expect(await journal.forwards(2)).toEqual({})
    expect(await journal.forwards(9)).toEqual({})
    expect((await journal.summaries([1])).map(({ forwards }) => Object.keys(forwards))).toEqual([targets])
  })

  it('continues with each attempt, target by target', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, to('a', 'b'))
    await journal.append(delivery('1'))
    await journal.append(delivery('2'))
    const retry = attempt('a', { outcome: 'retry', status: 500, at: NOW })
    const tried = { ...waiting, tries: 1 }
    await journal.record(1, retry, tried)
    await Promise.all([
      journal.record(1, attempt('a'), succeeded),
      journal.record(1, attempt('b'), succeeded),
      journal.record(2, retry, tried),
    ])
    await journal.finish(2, 'b', failed)
    expect(await journal.attempts(1)).toEqual([retry, attempt('a'), attempt('b')])
    expect(await journal.attempts(2)).toEqual([retry])
    expect(await journal.attempts(3)).toEqual([])
    expect(await collect(journal.waiting())).toEqual([{ n: 2, target: 'a', forward: tried }])
    expect((await journal.after(0, 9)).map(({ n, forwards }) => ({ n, forwards }))).toEqual([
      { n: 1, forwards: { a: succeeded, b: succeeded } },
      { n: 2, forwards: { a: tried, b: failed } },
    ])
  })

  it('counts what waits for each target, with the oldest of it', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, to('a', 'b', 'c'))
    expect(await journal.queues()).toEqual(new Map())
    for (const [i, id] of ['1', '2', '3'].entries())
      await journal.append(delivery(id, { receivedAt: NOW + i }))
    await journal.finish(1, 'a', failed)
    for (const n of [1, 2, 3]) await journal.finish(n, 'b', succeeded)
    expect(await journal.queues()).toEqual(
      new Map([
        ['a', { waiting: 2, oldest: NOW + 1 }],
        ['c', { waiting: 3, oldest: NOW }],
      ]),
    )
  })

  it.each<['if-failed' | 'always' | 'never', string[], string[]]>([
    ['if-failed', ['bad', 'new'], ['bad', 'slow', 'new']],
    ['always', ['good', 'bad', 'new'], ['good', 'bad', 'slow', 'new']],
    ['never', [], ['slow']],
  ])('follows the rule for a delivery that comes again: %s', async (onDuplicate, due, targets) => {
    await using database = await open(kind)
    const first = openJournal(database.sql, to('good', 'bad', 'slow', 'gone'))
    await first.append(delivery('1'))
    await first.record(1, attempt('good'), succeeded)
    await first.finish(1, 'bad', failed)
    await first.finish(1, 'gone', failed)
    const before = await first.forwards(1)
    const journal = openJournal(database.sql, { ...to('good', 'bad', 'slow', 'new'), onDuplicate })
    const again = delivery('1', { receivedAt: LATER })
    expect(await journal.append(again)).toEqual({ n: 1, duplicate: true, targets })
    const added = Object.fromEntries(due.map((target) => [target, { ...waiting, since: LATER }]))
    expect(await journal.forwards(1)).toEqual({ ...before, ...added })
    const waits = await collect(journal.waiting())
    expect(waits.map(({ target }) => target)).toEqual(targets)
    // Whatever waits, since the dispatcher may not know of it.
    expect(await journal.append(again)).toEqual({ n: 1, duplicate: true, targets })
    await journal.flush()
    expect(await journal.read(1)).toEqual({ n: 1, ...delivery('1'), duplicates: 2 })
  })

  it('counts attempts whose connection failed alike on one row, also between those of other targets', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, to('a', 'b'))
    await journal.append(delivery('1'))
    for (const at of [1, 2, 3]) {
      await journal.record(1, refused('a', at), waiting)
      await journal.record(1, refused('b', at, { error: null, outcome: 'timed out', ms: at }), waiting)
    }
    await journal.record(1, refused('a', 4, { error: 'ECONNRESET' }), waiting)
    await journal.record(1, refused('a', 5), waiting)
    const failure = attempt('b', { outcome: 'retry', status: 503 })
    await journal.record(1, { ...failure, at: 6 }, waiting)
    await journal.record(1, { ...failure, at: 7 }, waiting)
    expect(await journal.attempts(1)).toEqual([
      refused('a', 3, { count: 3 }),
      refused('b', 3, { error: null, outcome: 'timed out', ms: 3, count: 3 }),
      refused('a', 4, { error: 'ECONNRESET' }),
      refused('a', 5),
      { ...failure, at: 6 },
      { ...failure, at: 7 },
    ])
  })

  it('records the same attempt once, however often its caller repeats it', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, to('a', 'b'))
    await journal.append(delivery('1'))
    const all = [refused('a', 1), refused('b', 1), refused('a', 2), attempt('a', { at: 3 })]
    for (const one of all)
      await Promise.all(Array.from({ length: 3 }, () => journal.record(1, one, succeeded)))
    expect(await journal.attempts(1)).toEqual([
      refused('a', 2, { count: 2 }),
      refused('b', 1),
      attempt('a', { at: 3 }),
    ])
  })

  it('keeps the last of more attempts than 4,096', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, to('a'))
    await journal.append(delivery('1'))
    await journal.append(delivery('2'))
    await journal.record(1, attempt('a', { at: 1 }), waiting)
    await database.sql.transaction([{ sql: 'UPDATE attempt SET seq = 4095' }])
    for (const at of [2, 3, 4]) await journal.record(1, attempt('a', { at }), waiting)
    await journal.record(2, attempt('a', { at: 5 }), waiting)
    const attempts = async (n: number) => (await journal.attempts(n)).map(({ at }) => at)
    expect(await attempts(1)).toEqual([1, 4])
    expect(await attempts(2)).toEqual([5])
  })

  it('keeps the start of a long answer and of a long error', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, to('a'))
    await journal.append(delivery('1'))
    const answer = Uint8Array.from({ length: 5000 }, (_, i) => i)
    await journal.record(1, attempt('a', { answer, error: 'x'.repeat(2000) }), waiting)
    expect(await journal.attempts(1)).toEqual([
      attempt('a', { answer: answer.subarray(0, 4096), error: 'x'.repeat(1024) }),
    ])
  })

  it('of an entry or a target that is not there is not recorded', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, to('a'))
    await journal.record(7, attempt('a'), waiting)
    await journal.finish(7, 'a', waiting)
    expect([await journal.attempts(7), await journal.forwards(7)]).toEqual([[], {}])
    await journal.append(delivery('1'))
    await journal.finish(1, 'b', failed)
    expect(await journal.forwards(1)).toEqual({ a: waiting })
  })

  it('takes any text for a target', async () => {
    await using database = await open(kind)
    const targets = ['__proto__', 'constructor', '1', '', 'é\u{1f600}']
    const journal = openJournal(database.sql, to(...targets))
    await journal.append(delivery('1'))
    for (const target of targets) await journal.record(1, attempt(target), succeeded)
    const forwards = Object.fromEntries<Forwards[string]>(targets.map((target) => [target, succeeded]))
    expect(await journal.forwards(1)).toEqual(forwards)
    expect((await journal.summaries([1]))[0]?.forwards).toEqual(forwards)
    expect(await journal.attempts(1)).toEqual(targets.map((target) => attempt(target)))
  })

  it('that waits is all found, of any number of entries', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, to('b', 'a'))
    await Promise.all(Array.from({ length: 400 }, (_, i) => journal.append(delivery(`${i}`))))
    await Promise.all(Array.from({ length: 134 }, (_, i) => journal.finish(3 * i + 1, 'a', succeeded)))
    const found = (await collect(journal.waiting())).map(({ n, target }) => `${n} ${target}`)
    const expected = Array.from({ length: 400 }, (_, i) =>
      i % 3 === 0 ? [`${i + 1} b`] : [`${i + 1} b`, `${i + 1} a`],
    ).flat()
    expect(found).toEqual(expected)
    expect(expected.length).toBeGreaterThan(2 * 256)
  })
})

describe.each(['file', 'thread'] as const)('the forwarding of entries: %s', (kind) => {
  it('continues where it was after a restart', async () => {
    const folder = emptyFolder()
    {
      await using database = await open(kind, folder)
      const journal = openJournal(database.sql, to('a', 'b'))
      await journal.append(delivery('1'))
      await journal.append(delivery('2'))
      await journal.record(1, attempt('a'), succeeded)
    }
    await using database = await open(kind, folder)
    const journal = openJournal(database.sql)
    expect((await collect(journal.waiting())).map(({ n, target }) => [n, target])).toEqual([
      [1, 'b'],
      [2, 'a'],
      [2, 'b'],
    ])
    expect(await journal.attempts(1)).toEqual([attempt('a')])
  })
})
