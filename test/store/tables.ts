import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Database } from '../../src/store/database.js'
import type { Open } from './contract.js'

const bodies = (database: Database) =>
  database.table<number, Uint8Array>('bodies', { keys: 'number', values: 'bytes' })
const ids = (database: Database) =>
  database.table<string, { n: number }>('ids', { keys: 'string', values: 'json' })

/** What every backend's tables must do. */
export function describeTables(open: Open): void {
  describe('tables', () => {
    it('keep rows in the order of their numbers', async () => {
      await using database = await open()
      const table = bodies(database)
      const numbers = [0, 1, 255, 256, 65_536, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 7, Number.MAX_SAFE_INTEGER]
      await database.commit(numbers.toReversed().map((n) => table.put(n, Buffer.from(`${n}`))))
      const keys = (range?: Parameters<typeof table.range>[0]) =>
        [...table.range(range)].map(({ key }) => key)
      expect(keys()).toEqual(numbers)
      expect(keys({ reverse: true })).toEqual(numbers.toReversed())
      expect(keys({ from: 2, to: 65_536 })).toEqual([255, 256, 65_536])
      expect(keys({ from: 2, to: 65_536, reverse: true, limit: 2 })).toEqual([65_536, 256])
      expect(keys({ from: 2 ** 32, limit: 1 })).toEqual([2 ** 32])
      expect(keys({ from: 10, to: 5 })).toEqual([])
      expect(keys({ limit: 0 })).toEqual([])
      expect(table.count()).toBe(numbers.length)
      expect(Buffer.from(table.get(65_536) ?? []).toString()).toBe('65536')
      expect(table.get(2)).toBeUndefined()
    })

    it('give back bytes as they were, also none at all and very many', async () => {
      await using database = await open()
      const table = bodies(database)
      const values = [
        Buffer.of(),
        Buffer.from(Array.from({ length: 256 }, (_, i) => i)),
        randomBytes(3_000_000),
      ]
      await database.commit(values.map((value, n) => table.put(n, value)))
      // Compared as one: looking at each of three million bytes takes vitest a minute.
      expect(values.map((value, n) => value.equals(table.get(n) ?? randomBytes(1)))).toEqual([
        true,
        true,
        true,
      ])
      expect([...table.range()].map(({ key, value }) => values[key]?.equals(value))).toEqual([
        true,
        true,
        true,
      ])
      expect(table.get(0)?.constructor).toBe(Uint8Array)
    })

    it('give bytes that no later read or write changes', async () => {
      await using database = await open()
      const table = bodies(database)
      const sizes = [10, 10, 7000, 7000, 40_000, 40_000]
      const values = sizes.map((size, n) => Buffer.alloc(size, n + 1))
      const all = (): (Uint8Array | undefined)[] => values.map((_, n) => table.get(n))
      await database.commit(values.map((value, n) => table.put(n, value)))
      const read = all()
      await database.commit(values.map((value, n) => table.put(n, Buffer.alloc(value.length, 99))))
      all()
      expect(read.map((value, n) => values[n]?.equals(value ?? Buffer.of()))).toEqual(sizes.map(() => true))
      read[0]?.fill(0)
      expect(table.get(0)?.[0]).toBe(99)
    })

    it('are written together or not at all, and apart from the store', async () => {
      await using database = await open()
      const [numbered, named] = [bodies(database), ids(database)]
      await database.commit([
        numbered.put(1, Buffer.of(1)),
        named.put('é', { n: 1 }),
        named.put('x', { n: 2 }),
      ])
      await database.commit([numbered.remove(1), named.remove('x'), named.remove('never there')])
      expect([numbered.count(), named.count(), named.get('é'), named.get('x')]).toEqual([
        0,
        1,
        { n: 1 },
        undefined,
      ])
      expect(await database.store.list('')).toEqual([])
      expect(ids(database).get('é')).toEqual({ n: 1 })
    })

    it('say what they take in storage, in a transaction too', async () => {
      await using database = await open()
      const table = bodies(database)
      expect(table.bytes()).toBe(0)
      const row = (n: number) => table.put(n, Buffer.alloc(10_000, n))
      await database.commit(Array.from({ length: 100 }, (_, n) => row(n)))
      const full = table.bytes()
      // At most 8 bytes of key and a page for each row, beside its value, and the tree above.
      expect([full >= 1_000_000, full < 1_500_000]).toEqual([true, true])
      await database.commit(Array.from({ length: 100 }, (_, n) => row(n)))
      expect(table.bytes()).toBe(full)
      await database.commit(Array.from({ length: 50 }, (_, n) => table.remove(n)))
      const half = await database.transact(() => ({ result: table.bytes(), writes: [table.remove(50)] }))
      expect([half >= 500_000, half < 750_000]).toEqual([true, true])
      await database.commit(Array.from({ length: 50 }, (_, n) => table.remove(50 + n)))
      expect(table.bytes()).toBe(0)
    })

    it('refuse a key that is none before anything is written', async () => {
      await using database = await open()
      const [numbered, named] = [bodies(database), ids(database)]
      for (const n of [-1, 1.5, 2 ** 53, Number.NaN])
        expect(() => numbered.put(n, Buffer.of(1))).toThrow(RangeError)
      for (const id of ['', 'x'.repeat(1025)]) expect(() => named.put(id, { n: 1 })).toThrow('Invalid key')
      expect([numbered.count(), named.count()]).toEqual([0, 0])
    })

    it('can be changed and left while they are read', async () => {
      await using database = await open()
      const table = bodies(database)
      await database.commit(Array.from({ length: 100 }, (_, n) => table.put(n, Buffer.of(n))))
      const seen: number[] = []
      for (const { key } of table.range()) {
        seen.push(key)
        if (key < 20) await database.commit([table.remove(key), table.put(1000 + key, Buffer.of(key))])
        if (key === 50) break
      }
      expect(seen).toEqual(Array.from({ length: 51 }, (_, n) => n))
      expect(table.count()).toBe(100)
    })

    it('hold what hundreds of commits at once have written', async () => {
      await using database = await open()
      const [numbered, named] = [bodies(database), ids(database)]
      await Promise.all(
        Array.from({ length: 500 }, (_, n) =>
          database.commit([numbered.put(n, Buffer.from(`${n}`)), named.put(`id ${n}`, { n })]),
        ),
      )
      const found = [...numbered.range()].map(({ key, value }) => [
        key,
        Buffer.from(value).toString(),
        named.get(`id ${key}`),
      ])
      expect(found).toEqual(Array.from({ length: 500 }, (_, n) => [n, `${n}`, { n }]))
    })
  })
}
