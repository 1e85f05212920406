import { describe, expect, it } from 'vitest'
import { openJournal } from '../../src/journal/open.js'
import { REMEMBER_MS } from '../../src/journal/removed.js'
import type { Sql } from '../../src/store/sql.js'
import { delivery, KINDS, NOW, numbers, open } from './rig.js'

const all = { keep: 0, keepMax: Infinity }
const idsOf = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, i) => `${from + i}`)
const remembered = async (sql: Sql): Promise<number> =>
  (await sql.query<{ count: number }>('SELECT count(*) AS count FROM removed'))[0]?.count ?? 0

describe.each(KINDS)('the deliveries that a journal knows: %s', (kind) => {
  it('are those that it has, under any hook, and those that retention removed in the last 7 days', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    for (const id of ['1', '2', '3']) await journal.append(delivery(id))
    await journal.append(delivery('2', { hookId: '43' }))
    const known = async (): Promise<string[]> => [...(await journal.known(['1', '2', '3', '4']))].toSorted()
    expect(await known()).toEqual(['1', '2', '3'])
    expect(await journal.sweep({ ...all, now: NOW + 1 })).toBe(3)
    expect(await numbers(journal)).toEqual([4])
    expect(await known()).toEqual(['1', '2', '3'])
    // What a person has the code host send again is a new delivery.
    expect(await journal.append(delivery('1'))).toMatchObject({ n: 5, duplicate: false })
    await journal.sweep({ ...all, now: NOW + REMEMBER_MS })
    expect(await known()).toEqual(['1', '2', '3'])
    await journal.sweep({ ...all, now: NOW + 1 + REMEMBER_MS })
    expect(await known()).toEqual(['1', '2'])
    await journal.sweep({ ...all, now: NOW + 3 * REMEMBER_MS })
    expect([await known(), await remembered(database.sql)]).toEqual([['1'], 0])
  })

  it('are found among more ids than one query takes', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    await Promise.all(idsOf(0, 900).map((id) => journal.append(delivery(id))))
    expect((await journal.known(idsOf(100, 1100))).size).toBe(800)
    expect((await journal.known([])).size).toBe(0)
  })

  it('are at most 100,000 removed ones, the newest', async () => {
    await using database = await open(kind)
    const journal = openJournal(database.sql)
    await database.sql.transaction(
      [1, 2, 100_001, 100_002].map((n) => ({
        sql: 'INSERT INTO removed (n, delivery_id, expires_at) VALUES (?, ?, ?)',
        values: [n, `${n}`, NOW + 1],
      })),
    )
    await journal.sweep({ ...all, now: NOW })
    expect(await remembered(database.sql)).toBe(2)
    expect([...(await journal.known(['1', '2', '100001', '100002']))].toSorted()).toEqual([
      '100001',
      '100002',
    ])
  })
})
