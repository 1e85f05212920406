import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { openDatabase } from '../../src/store/open.js'
import type { Sql, SqlRow, Step } from '../../src/store/sql.js'
import { emptyFolder } from '../helpers/context.js'
import { holdLock } from './hold.js'
import { EMBEDDED, KINDS, type Kind, openKind, optionsOf } from './kinds.js'

/** A column for each type that relay's schema has. SQLite takes any name for one. */
const TABLE = `CREATE TABLE IF NOT EXISTS item
  (id INTEGER PRIMARY KEY, text TEXT, whole BIGINT, real DOUBLE PRECISION, bytes BYTEA)`

async function open(kind: Kind, folder = emptyFolder()): Promise<Sql> {
  const { sql } = await openKind(kind, folder)
  await sql.transaction([{ sql: TABLE }])
  return sql
}

const insert = (id: number, value: SqlRow[string] = null): Step => ({
  sql: `INSERT INTO item (id, ${columnOf(value)}) VALUES (?, ?) RETURNING id`,
  values: [id, value],
})
function columnOf(value: SqlRow[string]): string {
  if (value instanceof Uint8Array) return 'bytes'
  if (typeof value !== 'number') return 'text'
  return Number.isSafeInteger(value) ? 'whole' : 'real'
}
const valuesOf = async (sql: Sql): Promise<(SqlRow[string] | undefined)[]> => {
  const rows = await sql.query('SELECT text, whole, real, bytes FROM item ORDER BY id')
  return rows.map((row) => Object.values(row).find((value) => value !== null) ?? null)
}
const ids = async (sql: Sql): Promise<number[]> =>
  (await sql.query<{ id: number }>('SELECT id FROM item ORDER BY id')).map(({ id }) => id)

describe.each(KINDS)('an SQL database: %s', (kind) => {
  it('gives back the values that it was given', async () => {
    await using sql = await open(kind)
    const values = [null, '', 'é 😀 \u{10ffff}', 0, -1.5, 1e300, Number.MAX_SAFE_INTEGER, -Infinity]
    await sql.transaction(values.map((value, i) => insert(i, value)))
    expect(await valuesOf(sql)).toEqual(values)
  })

  it('replaces what text cannot hold, and cuts nothing off', async () => {
    await using sql = await open(kind)
    await sql.transaction([insert(1, 'a\0b\ud83dc')])
    expect(await valuesOf(sql)).toEqual(['a\ufffdb\ufffdc'])
  })

  it('stores bytes of any size, anywhere in their memory, and leaves the memory to the caller', async () => {
    await using sql = await open(kind)
    const memory = randomBytes(3_000_100)
    const sizes = [0, 1, 4095, 4096, 65_536, 3_000_000]
    const given = sizes.flatMap((size) => [0, 1, 7].map((from) => memory.subarray(from, from + size)))
    const expected = given.map((bytes) => Buffer.from(bytes))
    await sql.transaction(given.map((bytes, i) => insert(i, bytes)))
    expect(given.map((bytes, i) => expected[i]?.equals(bytes))).toEqual(given.map(() => true))
    memory.fill(0)
    const read = async () => {
      const rows = await sql.query<{ bytes: Uint8Array }>('SELECT bytes FROM item ORDER BY id')
      return rows.map(({ bytes }) => bytes)
    }
    const first = await read()
    expect(first.map((bytes, i) => expected[i]?.equals(bytes))).toEqual(given.map(() => true))
    for (const bytes of first) bytes.fill(1)
    expect((await read()).map((bytes, i) => expected[i]?.equals(bytes))).toEqual(given.map(() => true))
  })

  it('gives the rows of each step, and lets a step see those before it', async () => {
    await using sql = await open(kind)
    const count: Step = { sql: 'SELECT count(*) AS count FROM item' }
    expect(await sql.transaction([insert(1), count, insert(2), count])).toEqual([
      [{ id: 1 }],
      [{ count: 1 }],
      [{ id: 2 }],
      [{ count: 2 }],
    ])
    expect(await sql.transaction([])).toEqual([])
  })

  it('does all steps or none; a transaction that fails leaves those that share its commit', async () => {
    await using sql = await open(kind)
    await sql.transaction([insert(1)])
    const outcomes = await Promise.allSettled([
      sql.transaction([insert(2)]),
      sql.transaction([insert(3), insert(1)]),
      sql.transaction([insert(4), { sql: 'SELECT * FROM nowhere' }]),
      sql.transaction([insert(5)]),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
    for (const i of [1, 2]) expect(outcomes[i]).toMatchObject({ reason: { kind: 'storage' } })
    expect(await ids(sql)).toEqual([1, 2, 5])
  })

  it('does nothing of a transaction whose required step finds no row', async () => {
    await using sql = await open(kind)
    const requires = (id: number): Step => ({
      sql: 'SELECT 1 AS found FROM item WHERE id = ?',
      values: [id],
      required: true,
    })
    expect(
      await Promise.all([
        sql.transaction([insert(1), requires(2), insert(3)]),
        sql.transaction([insert(2)]),
        sql.transaction([requires(2), insert(4)]),
        sql.transaction([insert(5), requires(6)]),
      ]),
    ).toEqual([undefined, [[{ id: 2 }]], [[{ found: 1 }], [{ id: 4 }]], undefined])
    expect(await ids(sql)).toEqual([2, 4])
  })

  it('fails with the error kind `storage`, and says no value', async () => {
    await using sql = await open(kind)
    await sql.transaction([insert(1)])
    const error: unknown = await sql.transaction([insert(1, 'secret')]).catch((error: unknown) => error)
    expect(error).toMatchObject({ kind: 'storage' })
    expect(String(error)).not.toContain('secret')
    await expect(sql.query('SELECT * FROM nowhere')).rejects.toMatchObject({ kind: 'storage' })
  })

  it('carries out hundreds of transactions at once, each by itself', async () => {
    await using sql = await open(kind)
    const numbers = Array.from({ length: 600 }, (_, i) => i)
    const outcomes = await Promise.allSettled(
      numbers.map((i) => sql.transaction([insert(i - (i % 3 === 1 ? 1 : 0), Buffer.from(`${i}`))])),
    )
    expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual(numbers.map((i) => i % 3 !== 1))
    expect(await ids(sql)).toEqual(numbers.filter((i) => i % 3 !== 1))
  })

  it('finishes what is under way before it closes, and closing twice is no error', async () => {
    const folder = emptyFolder()
    const sql = await open(kind, folder)
    const writes = Array.from({ length: 300 }, (_, i) => sql.transaction([insert(i)]))
    await sql[Symbol.asyncDispose]()
    expect((await Promise.allSettled(writes)).map(({ status }) => status)).toEqual(
      writes.map(() => 'fulfilled'),
    )
    await sql[Symbol.asyncDispose]()
    await expect(sql.query('SELECT 1')).rejects.toMatchObject({ kind: 'storage' })
    await expect(sql.transaction([insert(999)])).rejects.toMatchObject({ kind: 'storage' })
    if (kind === 'memory') return
    await using again = await open(kind, folder)
    expect(await ids(again)).toHaveLength(300)
  })
})

describe.each(EMBEDDED)('the file of an SQL database: %s', (kind) => {
  it('says what the data takes, and gives free space back in steps', async () => {
    await using sql = await open(kind)
    const empty = await sql.usedBytes()
    await sql.transaction(Array.from({ length: 100 }, (_, i) => insert(i, Buffer.alloc(100_000))))
    expect(await sql.usedBytes()).toBeGreaterThan(empty + 10_000_000)
    expect(await sql.usedBytes()).toBeLessThan(empty + 11_000_000)
    await sql.transaction([{ sql: 'DELETE FROM item' }])
    expect(await sql.usedBytes()).toBeLessThan(empty + 100_000)
    const pages = async () => (await sql.query<{ page_count: number }>('PRAGMA page_count'))[0]?.page_count
    const before = Number(await pages())
    let steps = 1
    while (await sql.shrink()) steps++
    expect(steps).toBeGreaterThan(5)
    expect(Number(await pages()) * 20).toBeLessThan(before)
  })
})

const HELD = /another process holds it\. Try again, or end a relay that is stopped or hangs$/

describe('an SQL database that another holds', () => {
  it.concurrent.each(['file', 'thread'] as const)(
    'can be opened and read; writing fails in 4 s with the reason, and works when the lock is free: %s',
    async (kind) => {
      const folder = emptyFolder()
      await (await open(kind, folder))[Symbol.asyncDispose]()
      using holder = holdLock(folder)
      await using database = await openDatabase(optionsOf(kind, folder))
      const { sql } = database
      const began = performance.now()
      const first = sql.transaction([insert(1)])
      const ends = [first.catch(String)]
      expect(await ids(sql)).toEqual([])
      expect(performance.now() - began).toBeLessThan(1000)
      await new Promise((resolve) => setTimeout(resolve, 500))
      // Behind the first, and yet not for longer.
      const second = sql.transaction([insert(2)])
      const secondBegan = performance.now()
      ends.push(second.catch(String))
      expect(await ends[0]).toMatch(HELD)
      expect(performance.now() - began).toBeLessThan(4000)
      expect(await ends[1]).toMatch(HELD)
      expect(performance.now() - secondBegan).toBeLessThan(4000)
      const third = sql.transaction([insert(3)])
      holder.release()
      expect(await third).toEqual([[{ id: 3 }]])
      expect(await ids(sql)).toEqual([3])
    },
    15_000,
  )
})

describe('a database in a thread', () => {
  it('refuses more calls, and more bytes in them, than may wait for the disk', async () => {
    const folder = emptyFolder()
    await using sql = await open('thread', folder)
    {
      using _ = holdLock(folder)
      const waiting = Array.from({ length: 4096 }, (_, i) => sql.transaction([insert(i)]))
      await expect(sql.transaction([insert(5000)])).rejects.toMatchObject({
        kind: 'storage',
        message: expect.stringContaining('too much waits for the disk'),
      })
      _.release()
      await Promise.all(waiting)
    }
    using _ = holdLock(folder)
    const large = Buffer.alloc(16_777_216)
    const waiting = [6000, 6001, 6002, 6003].map((id) => sql.transaction([insert(id, large)]))
    await expect(sql.transaction([insert(6004, Buffer.of(1))])).rejects.toMatchObject({ kind: 'storage' })
    expect(await ids(sql)).toHaveLength(4096)
    _.release()
    await Promise.all(waiting)
    await sql.transaction([insert(6005, large)])
    expect((await ids(sql)).slice(4096)).toEqual([6000, 6001, 6002, 6003, 6005])
  })
})
