import { describe, expect, it } from 'vitest'
import { openJournal } from '../../src/journal/open.js'
import { attempt, collect, delivery, KINDS, open, succeeded, waiting } from './rig.js'

describe.each(KINDS)('a fence around what is recorded: %s', (kind) => {
  it('takes the place of the guard: where it does not hold, nothing is recorded', async () => {
    await using database = await open(kind)
    const reason = (text: string) => () => Promise.reject(new Error(text))
    const holds = { statement: () => ({ sql: 'SELECT 1', required: true }) as const, refuse: reason('never') }
    const failing = { sql: 'SELECT 1 WHERE 1 = 0', required: true } as const
    const fails = { statement: () => failing, refuse: reason('fenced') }
    const guarded = { statement: () => failing, refuse: reason('guarded') }
    const journal = openJournal(database.sql, { targetsOf: () => ['a', 'b'] })
    await journal.append(delivery('1'))
    await expect(journal.record(1, attempt('a'), succeeded, fails)).rejects.toThrow('fenced')
    await expect(journal.finish(1, 'a', succeeded, fails)).rejects.toThrow('fenced')
    expect(await journal.attempts(1)).toEqual([])
    const other = openJournal(database.sql, { guard: guarded })
    await expect(other.record(1, attempt('a'), succeeded)).rejects.toThrow('guarded')
    await other.record(1, attempt('a'), succeeded, holds)
    expect(await journal.forwards(1)).toEqual({ a: succeeded, b: waiting })
  })
})

describe.each(KINDS)('what waits in a journal: %s', (kind) => {
  it('can be read for one target, and from an entry on', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql, { targetsOf: () => ['b', 'a'] })
    for (const id of ['1', '2', '3']) await journal.append(delivery(id))
    await journal.record(2, attempt('a'), succeeded)
    const read = async (filter?: Parameters<typeof journal.waiting>[0]) =>
      (await collect(journal.waiting(filter))).map(({ n, target }) => `${n}${target}`)
    expect(await read()).toEqual(['1b', '1a', '2b', '3b', '3a'])
    expect(await read({ target: 'a' })).toEqual(['1a', '3a'])
    expect(await read({ after: 1 })).toEqual(['2b', '3b', '3a'])
    expect(await read({ after: 1, target: 'a' })).toEqual(['3a'])
    expect(await read({ after: 3 })).toEqual([])
    expect(await read({ target: 'c' })).toEqual([])
  })
})
