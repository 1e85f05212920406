import { describe, expect, it } from 'vitest'
import { RelayError } from '../../src/base/errors.js'
import type { Clock } from '../../src/base/time.js'
import type { Json } from '../../src/store/contract.js'
import type { Database } from '../../src/store/database.js'

export type Open = (clock?: Clock) => Promise<Database>

const NOW = Date.UTC(2026, 0, 1)
const TOO_LONG = 'é'.repeat(512) + 'x'
const LONGEST = 'é'.repeat(512)
const BAD_KEYS = ['', TOO_LONG, 'a\0', 'half \ud83d of a pair', '\ude00']

/** What every backend must do; with fewer records where each takes its time. */
export function describeStore(open: Open, records = 1700): void {
  describe('values', () => {
    it.each<[string, Json]>([
      ['text', 'é 😀 \0 \ud83d'],
      ['numbers', [0, -1, 1.5, 1e300, Number.MAX_SAFE_INTEGER]],
      ['nothing', null],
      ['truth', [true, false]],
      ['nested', { a: [{ b: { c: [] } }], '': {} }],
      ['awkward names', JSON.parse('{"__proto__":{"x":1},"constructor":2,"toString":null}')],
      ['large', 'x'.repeat(300_000)],
    ])('come back as they were: %s', async (_, value) => {
      await using database = await open()
      await database.store.put('key', value)
      expect(await database.store.get('key')).toEqual(value)
      expect(JSON.stringify(await database.store.get('key'))).toBe(JSON.stringify(value))
    })

    it('are copies: what the caller does to them changes nothing', async () => {
      await using database = await open()
      const value = { list: [1] }
      await database.store.put('key', value)
      value.list.push(2)
      const first = await database.store.get('key')
      expect(first).toEqual({ list: [1] })
      Object.assign(first ?? {}, { list: [3] })
      expect(await database.store.get('key')).toEqual({ list: [1] })
    })
  })

  describe('keys', () => {
    it('are 1 to 1,024 bytes of well-formed Unicode; any other is refused by every method', async () => {
      await using database = await open()
      const { store } = database
      await store.put(LONGEST, 1)
      expect(await store.list('')).toEqual([LONGEST])
      expect(await store.list(LONGEST)).toEqual([LONGEST])
      for (const key of BAD_KEYS) {
        const calls = [
          () => store.get(key),
          () => store.put(key, 1),
          () => store.putIfAbsent(key, 1),
          () => store.take(key),
          () => store.delete(key),
          () =>
            store.write([
              { type: 'put', key: 'fine', value: 1 },
              { type: 'put', key, value: 1 },
            ]),
          () => store.write([{ type: 'delete', key }]),
          () => store.write([{ type: 'put', key: 'fine', value: 1 }], [{ key, value: undefined }]),
        ]
        for (const call of calls) await expect(call()).rejects.toMatchObject({ kind: 'bad_request' })
      }
      for (const prefix of BAD_KEYS.slice(1)) {
        await expect(store.list(prefix)).rejects.toMatchObject({ kind: 'bad_request' })
      }
      expect(await store.list('')).toEqual([LONGEST])
    })

    it('may hold any character, and those that look alike stay apart', async () => {
      await using database = await open()
      const keys = ['\u0001', '__proto__', 'a', 'a\u0001', 'a\u0001b', 'e\u0301', '\u00e9', '\uffff', '😀']
      for (const key of keys) await database.store.put(key, key)
      for (const key of keys) expect(await database.store.get(key)).toBe(key)
      expect(await database.store.list('')).toEqual(keys)
    })
  })

  describe('list', () => {
    it('gives every key with the prefix, and no other, in the order of their bytes', async () => {
      await using database = await open()
      const inOrder = [
        'a',
        'ab',
        'a\uffff',
        'a\u{10000}',
        'a😀',
        'a😀z',
        'a\u{10ffff}',
        'a\u{10ffff}\u{10ffff}',
        'b',
      ]
      for (const key of inOrder.toReversed()) await database.store.put(key, 1)
      expect(await database.store.list('')).toEqual(inOrder)
      expect(await database.store.list('a')).toEqual(inOrder.slice(0, -1))
      expect(await database.store.list('a😀')).toEqual(['a😀', 'a😀z'])
      expect(await database.store.list('a\u{10ffff}')).toEqual(['a\u{10ffff}', 'a\u{10ffff}\u{10ffff}'])
      expect(await database.store.list('c')).toEqual([])
    })
  })

  describe('expiry', () => {
    it('is an instant from which a record does not exist for any method', async () => {
      let now = NOW
      await using database = await open(() => now)
      const { store } = database
      const expiry = { expiresAt: NOW + 1000 }
      for (const key of ['get', 'take', 'delete', 'absent', 'write']) await store.put(key, 'old', expiry)
      await store.put('stays', 1)
      now = NOW + 999
      expect(await store.get('get')).toBe('old')
      expect(await store.putIfAbsent('absent', 'new')).toBe(false)
      now = NOW + 1000
      expect(await store.list('')).toEqual(['stays'])
      expect(await store.get('get')).toBeUndefined()
      expect(await store.take('take')).toBeUndefined()
      expect(await store.delete('delete')).toBe(false)
      expect(await store.putIfAbsent('absent', 'new')).toBe(true)
      expect(await store.get('absent')).toBe('new')
      const put = { type: 'put', key: 'write', value: 'new' } as const
      expect(await store.write([put], [{ key: 'write', value: 'old' }])).toBe(false)
      expect(await store.write([put], [{ key: 'write', value: undefined }])).toBe(true)
      expect(await store.list('')).toEqual(['absent', 'stays', 'write'])
    })

    it('is replaced with the value, and one in the past or that is no number never lets a record exist', async () => {
      let now = NOW
      await using database = await open(() => now)
      const { store } = database
      await store.put('longer', 1, { expiresAt: NOW + 10 })
      await store.put('longer', 2)
      await store.write([{ type: 'put', key: 'shorter', value: 1 }])
      await store.write([{ type: 'put', key: 'shorter', value: 2, expiresAt: NOW + 10 }])
      await store.put('past', 1, { expiresAt: 0 })
      await store.putIfAbsent('none', 1, { expiresAt: Number.NaN })
      expect(await store.list('')).toEqual(['longer', 'shorter'])
      now = NOW + 10
      expect(await store.list('')).toEqual(['longer'])
    })

    it('is what sweep goes by: it deletes the expired, all of them, and nothing else', async () => {
      let now = NOW
      await using database = await open(() => now)
      const { store } = database
      const puts = Array.from({ length: records }, (_, i) => ({
        type: 'put' as const,
        key: `key:${String(i).padStart(4, '0')}`,
        value: i,
        ...(i % 3 > 0 && { expiresAt: NOW + i }),
      }))
      await store.write(puts)
      expect(await store.sweep()).toBe(0)
      now = NOW + 1
      expect(await store.sweep()).toBe(1)
      now = NOW + 5000
      expect(await store.sweep()).toBe(records - Math.ceil(records / 3) - 1)
      expect(await store.sweep()).toBe(0)
      now = 0
      expect(await store.list('')).toEqual(puts.filter((_, i) => i % 3 === 0).map(({ key }) => key))
    })
  })

  describe('atomic steps', () => {
    it('take: one of many callers gets the value', async () => {
      await using database = await open()
      await database.store.put('key', 'value')
      const taken = await Promise.all(Array.from({ length: 50 }, () => database.store.take('key')))
      expect(taken.filter((value) => value !== undefined)).toEqual(['value'])
      expect(await database.store.get('key')).toBeUndefined()
    })

    it('putIfAbsent: one of many callers stores', async () => {
      await using database = await open()
      const stored = await Promise.all(
        Array.from({ length: 50 }, (_, i) => database.store.putIfAbsent('key', i)),
      )
      expect(stored.filter(Boolean)).toHaveLength(1)
      expect(await database.store.get('key')).toBe(stored.indexOf(true))
    })

    it('delete: one of many callers learns that there was one', async () => {
      await using database = await open()
      await database.store.put('key', null)
      const deleted = await Promise.all(Array.from({ length: 50 }, () => database.store.delete('key')))
      expect(deleted.filter(Boolean)).toHaveLength(1)
    })

    it('write: of many who count up from what they read, each is counted once', async () => {
      await using database = await open()
      const { store } = database
      const countUp = async (): Promise<void> => {
        for (;;) {
          const value = await store.get('n')
          const next = Number(value ?? 0) + 1
          if (await store.write([{ type: 'put', key: 'n', value: next }], [{ key: 'n', value }])) return
        }
      }
      await Promise.all(Array.from({ length: 20 }, countUp))
      expect(await store.get('n')).toBe(20)
    })
  })

  describe('write', () => {
    it('does its operations in order, or none when an expectation does not hold', async () => {
      await using database = await open()
      const { store } = database
      await store.put('a', { x: 1, y: [2] })
      expect(
        await store.write(
          [
            { type: 'put', key: 'b', value: 1 },
            { type: 'put', key: 'b', value: 2 },
            { type: 'put', key: 'c', value: 3 },
            { type: 'delete', key: 'c' },
            { type: 'delete', key: 'never there' },
          ],
          [
            { key: 'a', value: { x: 1, y: [2] } },
            { key: 'c', value: undefined },
          ],
        ),
      ).toBe(true)
      expect(await store.write([{ type: 'delete', key: 'a' }], [{ key: 'b', value: 1 }])).toBe(false)
      expect(await store.write([{ type: 'delete', key: 'a' }], [{ key: 'a', value: undefined }])).toBe(false)
      expect(await store.write([{ type: 'delete', key: 'a' }], [{ key: 'z', value: null }])).toBe(false)
      expect(await store.write([])).toBe(true)
      expect(await store.list('')).toEqual(['a', 'b'])
      expect(await store.get('b')).toBe(2)
    })
  })

  it('answers `storage` once it is closed, and closing twice is no error', async () => {
    const database = await open()
    const { store } = database
    await store.put('key', 1)
    await database[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
    const calls = [
      () => store.get('key'),
      () => store.list(''),
      () => store.put('key', 1),
      () => store.take('key'),
      () => store.sweep(),
    ]
    for (const call of calls) {
      const error: unknown = await call().catch((error: unknown) => error)
      expect(error).toBeInstanceOf(RelayError)
      expect(error).toMatchObject({ kind: 'storage' })
    }
  })
}
