import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import type { HandOns } from '../../src/journal/hand-on.js'
import { openJournal } from '../../src/journal/open.js'
import { openTables } from '../../src/journal/tables.js'
import { breakable } from '../helpers/breakable.js'
import { emptyFolder } from '../helpers/context.js'
import { attempt, delivery, failed, KINDS, NOW, open, succeeded, waiting } from './rig.js'

const to = (...targets: string[]) => ({ targetsOf: () => targets })
const LATER = NOW + 60_000

describe.each(KINDS)('the hand-on of entries in a %s database', (kind) => {
  it('begins with the entry, in the order of the targets', async () => {
    await using database = await open(kind)
    const journal = openJournal(database, {
      targetsOf: ({ event }) => (event === 'push' ? ['b', 'a'] : []),
    })
    expect(await journal.append(delivery('1'))).toEqual({ n: 1, duplicate: false, targets: ['b', 'a'] })
    expect(await journal.append(delivery('2', { event: 'ping' }))).toEqual({
      n: 2,
      duplicate: false,
      targets: [],
    })
    await journal.append(delivery('3'))
    expect([...journal.unfinished()]).toEqual([
      { n: 1, target: 'b', handOn: waiting },
      { n: 1, target: 'a', handOn: waiting },
      { n: 3, target: 'b', handOn: waiting },
      { n: 3, target: 'a', handOn: waiting },
    ])
    expect([1, 2, 3, 4].map((n) => journal.handOns(n))).toEqual([
      { a: waiting, b: waiting },
      {},
      { a: waiting, b: waiting },
      {},
    ])
  })

  it('goes on with each attempt, target by target', async () => {
    await using database = await open(kind)
    const journal = openJournal(database, to('a', 'b'))
    await journal.append(delivery('1'))
    await journal.append(delivery('2'))
    const retry = attempt('a', { outcome: 'retry', status: 500 })
    const tried = { ...waiting, tries: 1 }
    await journal.record(1, retry, tried)
    await Promise.all([
      journal.record(1, attempt('a'), succeeded),
      journal.record(1, attempt('b'), succeeded),
      journal.record(2, retry, tried),
    ])
    await journal.finish(2, 'b', failed)
    expect([1, 2, 3].map((n) => journal.attempts(n))).toEqual([
      [retry, attempt('a'), attempt('b')],
      [retry],
      [],
    ])
    expect([1, 2].map((n) => journal.handOns(n))).toEqual([
      { a: succeeded, b: succeeded },
      { a: tried, b: failed },
    ])
    expect([...journal.unfinished()]).toEqual([{ n: 2, target: 'a', handOn: tried }])
    expect([...journal.summaries()].map(({ n, handOns }) => ({ n, handOns }))).toEqual([
      { n: 1, handOns: { a: succeeded, b: succeeded } },
      { n: 2, handOns: { a: tried, b: failed } },
    ])
    expect(openTables(database).open.count()).toBe(1)
  })

  it.each<['if-failed' | 'always' | 'never', string[]]>([
    ['if-failed', ['bad', 'new']],
    ['always', ['good', 'bad', 'new']],
    ['never', []],
  ])('follows the rule for a delivery that comes again: %s', async (onDuplicate, targets) => {
    await using database = await open(kind)
    const first = openJournal(database, to('good', 'bad', 'slow', 'gone'))
    await first.append(delivery('1'))
    await first.record(1, attempt('good'), succeeded)
    await first.finish(1, 'bad', failed)
    await first.finish(1, 'gone', failed)
    const before = first.handOns(1)
    const journal = openJournal(database, { ...to('good', 'bad', 'slow', 'new'), onDuplicate })
    const again = delivery('1', { receivedAt: LATER })
    expect(await journal.append(again)).toEqual({ n: 1, duplicate: true, targets })
    const added = Object.fromEntries(targets.map((target) => [target, { ...waiting, since: LATER }]))
    expect(journal.handOns(1)).toEqual({ ...before, ...added })
    expect([...journal.unfinished()].map(({ target }) => target).toSorted()).toEqual(
      ['slow', ...targets].toSorted(),
    )
    expect(await journal.append(again)).toEqual({ n: 1, duplicate: true, targets: [] })
    expect(journal.read(1)).toEqual({ n: 1, ...delivery('1'), duplicates: 2 })
  })

  it('is decided by the entry, not by what came again under its id', async () => {
    await using database = await open(kind)
    await openJournal(database).append(delivery('1'))
    const journal = openJournal(database, { targetsOf: ({ event }) => [event] })
    expect(await journal.append(delivery('1', { event: 'other' }))).toEqual({
      n: 1,
      duplicate: true,
      targets: ['push'],
    })
  })

  it('counts attempts whose connection failed alike on one row, also between those of other targets', async () => {
    await using database = await open(kind)
    const journal = openJournal(database, to('a', 'b'))
    await journal.append(delivery('1'))
    const refused = (target: string, at: number, more = {}) =>
      attempt(target, { outcome: 'unreachable', status: null, error: 'ECONNREFUSED', at, ...more })
    for (const at of [1, 2, 3]) {
      await journal.record(1, refused('a', at), waiting)
      await journal.record(1, refused('b', at), waiting)
    }
    await journal.record(1, refused('a', 4, { error: 'ECONNRESET' }), waiting)
    await journal.record(1, refused('a', 5), waiting)
    const failure = attempt('b', { outcome: 'retry', status: 503, at: 6 })
    await journal.record(1, failure, waiting)
    await journal.record(1, failure, waiting)
    expect(journal.attempts(1)).toEqual([
      refused('a', 3, { count: 3 }),
      refused('b', 3, { count: 3 }),
      refused('a', 4, { error: 'ECONNRESET' }),
      refused('a', 5),
      failure,
      failure,
    ])
  })

  it('keeps the last of more attempts than there are rows', async () => {
    await using database = await open(kind)
    const journal = openJournal(database, to('a'))
    await journal.append(delivery('1'))
    await journal.append(delivery('2'))
    const { attempts } = openTables(database)
    await journal.record(1, attempt('a', { at: 1 }), waiting)
    const [row] = attempts.range()
    await database.commit([attempts.put(4096 + 4095, row?.value ?? Buffer.of())])
    await journal.record(1, attempt('a', { at: 2 }), waiting)
    await journal.record(1, attempt('a', { at: 3 }), waiting)
    await journal.record(2, attempt('a', { at: 4 }), waiting)
    expect([1, 2].map((n) => journal.attempts(n).map(({ at }) => at))).toEqual([[1, 3], [4]])
  })

  it('neither reads nor writes the entry', async () => {
    await using database = await open(kind)
    const journal = openJournal(database, to('a'))
    await journal.append(delivery('1'))
    const { metas, bodies } = openTables(database)
    await database.commit([metas.remove(1), bodies.remove(1)])
    await journal.record(1, attempt('a'), succeeded)
    expect([journal.attempts(1), journal.handOns(1)]).toEqual([[attempt('a')], { a: succeeded }])
    expect([metas.count(), bodies.count()]).toEqual([0, 0])
  })

  it('of an entry that is not there is not recorded', async () => {
    await using database = await open(kind)
    const journal = openJournal(database, to('a'))
    await journal.record(7, attempt('a'), waiting)
    await journal.finish(7, 'a', waiting)
    expect([journal.attempts(7), journal.handOns(7), [...journal.unfinished()]]).toEqual([[], {}, []])
  })

  it('takes any text for a target', async () => {
    await using database = await open(kind)
    const targets = ['__proto__', 'constructor', '1', '', 'é\u0000\ud83d\ude00']
    const journal = openJournal(database, to(...targets))
    await journal.append(delivery('1'))
    for (const target of targets) await journal.record(1, attempt(target), succeeded)
    const all = targets.map((target) => [target, succeeded] as const)
    expect(journal.handOns(1)).toEqual(Object.fromEntries<HandOns[string]>(all))
    expect(journal.attempts(1)).toEqual(targets.map((target) => attempt(target)))
  })
})

describe('the hand-on of entries', () => {
  it('goes on where it was after a restart', async () => {
    const folder = emptyFolder()
    {
      await using database = await open('file', folder)
      const journal = openJournal(database, to('a', 'b'))
      await journal.append(delivery('1'))
      await journal.append(delivery('2'))
      await journal.record(1, attempt('a'), succeeded)
    }
    await using database = await open('file', folder)
    const journal = openJournal(database)
    expect([...journal.unfinished()].map(({ n, target }) => [n, target])).toEqual([
      [1, 'b'],
      [2, 'a'],
      [2, 'b'],
    ])
    expect(journal.attempts(1)).toEqual([attempt('a')])
  })

  it('that cannot be stored is not begun, and a delivery not taken', async () => {
    const broken = breakable(await open('memory'))
    const journal = openJournal(broken, to('a'))
    broken.now('fails')
    await expect(journal.append(delivery('1'))).rejects.toThrow('no room')
    expect([...journal.unfinished()]).toEqual([])
    broken.now('works')
    await journal.append(delivery('1'))
    broken.now('fails')
    await expect(journal.record(1, attempt('a'), succeeded)).rejects.toThrow('no room')
    expect([journal.handOns(1), journal.attempts(1)]).toEqual([{ a: waiting }, []])
  })

  it('of a later format is refused by name', async () => {
    await using database = await open('memory')
    const rows = database.table<number, { v: number }>('journal-handon', { keys: 'number', values: 'json' })
    await database.commit([rows.put(1, { v: 2 })])
    expect(() => openJournal(database).handOns(1)).toThrow(
      new RelayError('storage', 'The hand-on of entry 1 was written by a newer version of relay'),
    )
  })
})
