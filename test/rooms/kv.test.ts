import { randomBytes } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { SharedStore } from '../../src/base/shared-store.js'
import { checkKey, countKeyUse, createCipher, isEncrypted, rotateKey } from '../../src/store/cipher.js'
import { withLock } from '../../src/store/lock.js'
import { createStore, type Json, type Store } from '../../src/store/kv.js'
import { openDatabase } from '../../src/store/open.js'
import { openPostgres } from '../../src/store/postgres.js'
import { fetchRows, type Sql } from '../../src/store/sql.js'
import { describeWith } from '../kit/needs.js'
import { database, PASSWORD } from '../kit/postgres.js'
import { same } from './same.js'

const newKey = (): Secret => new Secret(randomBytes(32).toString('base64'))
const memory = () => openDatabase({ kind: 'memory', folder: '' })

const key = fc.constantFrom('a', 'a:', 'a:b', 'a:b2', 'b', 'é', 'A:b', 'a:\u{10ffff}', 'a:😀', '%', 'a_')
const prefix = fc.oneof(key, fc.constantFrom('', 'a:b', 'c', '_'))
// PostgreSQL's text and JSON both have all of Unicode but NUL, which JSON escapes.
const value = fc.json({ noUnicodeString: false }).map((text): Json => JSON.parse(text))
const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ put: key, value, end: fc.constantFrom(undefined, 5, 50, NaN, Infinity, -1) }),
  },
  { weight: 1, arbitrary: fc.record({ take: key }) },
  { weight: 1, arbitrary: fc.record({ delete: key }) },
  { weight: 1, arbitrary: fc.record({ wait: fc.nat({ max: 30 }) }) },
  { weight: 1, arbitrary: fc.constant({ sweep: true }) },
)

type Command = typeof command extends fc.Arbitrary<infer Each> ? Each : never

async function run(
  open: (clock: () => number) => Store,
  commands: readonly Command[],
  prefixes: readonly string[],
): Promise<void> {
  let now = 1000
  const store = open(() => now)
  const model = new Map<string, { readonly value: Json; readonly end: number }>()
  const get = (key: string): Json | undefined => {
    const found = model.get(key)
    return found && found.end > now ? found.value : undefined
  }
  for (const each of commands) {
    if ('put' in each) {
      const end = each.end === undefined ? Infinity : now + each.end
      await store.put(each.put, each.value, each.end === undefined ? undefined : end)
      model.set(each.put, { value: each.value, end: Number.isNaN(end) ? -Infinity : end })
    } else if ('take' in each) {
      same(await store.consume(each.take), get(each.take))
      model.delete(each.take)
    } else if ('delete' in each) {
      same(await store.delete(each.delete), get(each.delete) !== undefined)
      model.delete(each.delete)
    } else if ('wait' in each) now += each.wait
    else await store.sweep()
    const touched = 'put' in each ? each.put : 'a'
    same(await store.get(touched), get(touched))
  }
  for (const each of prefixes) {
    const keys = [...model.keys()].filter((key) => key.startsWith(each) && get(key) !== undefined)
    const inOrder = keys.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
    same([each, await store.list(each)], [each, inOrder])
  }
}

describe('whatever happens to it, the key-value store is a map whose records expire', () => {
  it.each([false, true])('on SQLite; encrypted: %s', async (isEncrypted) => {
    expect.hasAssertions()
    const cipher = createCipher({ current: newKey() }, 'default')
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 30 }), fc.array(prefix), async (commands, prefixes) => {
        await using opened = await memory()
        const options = isEncrypted ? { cipher: async () => cipher } : {}
        await run((clock) => createStore(opened.sql, { clock, ...options }), commands, prefixes)
      }),
      { numRuns: 30 },
    )
  })

  it('refuses keys that a database would change', async () => {
    await using opened = await memory()
    for (const key of ['', 'a\0', '\ud800', 'a'.repeat(1025), '😀'.repeat(257)])
      await expect(opened.store.put(key, 1)).rejects.toMatchObject({ kind: 'bad_request' })
    await opened.store.put('😀'.repeat(256), 1)
    expect(await opened.store.list('😀')).toHaveLength(1)
  })

  it('says nothing of a record that is no JSON', async () => {
    await using opened = await memory()
    const { store } = opened
    await store.put('token:ada', 1)
    await opened.sql.write(() => fetchRows(`UPDATE kv SET value = 'gho_canary'`))
    const why = /^A record of the database \(token\) was changed(?!.*(canary|ada))/
    for (const reading of [store.get('token:ada'), store.consume('token:ada')])
      await expect(reading).rejects.toThrow(why)
  })
})

describeWith('postgres', 'the key-value store on PostgreSQL', () => {
  it('is the same map', async () => {
    expect.hasAssertions()
    await using server = await database()
    const store = new SharedStore(server.store, { password: new Secret(PASSWORD) })
    let profile = 0
    const some = fc.array(command, { minLength: 15, size: '+1' })
    await fc.assert(
      fc.asyncProperty(some, fc.array(prefix), async (commands, prefixes) => {
        await using sql = await openPostgres({ store, profile: `law-${profile++}` })
        const cipher = createCipher({ current: newKey() }, 'default')
        await run((clock) => createStore(sql, { clock, cipher: async () => cipher }), commands, prefixes)
      }),
      { numRuns: 2, endOnFailure: true },
    )
  })
})

describe('an encrypted record', () => {
  const encrypted = (sql: Sql, current: Secret, previous?: Secret, place = 'default') => {
    const cipher = createCipher({ current, previous }, place)
    return { cipher, store: createStore(sql, { cipher: async () => cipher }) }
  }

  it('shows nothing, and is read by its own key, in its own profile, under its own name only', async () => {
    await using opened = await memory()
    const { sql } = opened
    const [right, wrong] = [newKey(), newKey()]
    const { store } = encrypted(sql, right)
    expect(await isEncrypted(sql)).toBe(false)
    await checkKey(store)
    expect(await isEncrypted(sql)).toBe(true)
    await store.put('token:ada', 'gho_canary')
    await store.put('token:bob', 'other')
    const rows = JSON.stringify(await sql.query('SELECT * FROM kv'))
    expect(rows).not.toContain('canary')
    await checkKey(store)
    const other = encrypted(sql, wrong).store
    await expect(checkKey(other)).rejects.toMatchObject({ kind: 'settings' })
    await expect(other.get('token:ada')).rejects.toMatchObject({ kind: 'settings' })
    expect(JSON.stringify(await sql.query('SELECT * FROM kv'))).toBe(rows)
    const moved = {
      kind: 'storage',
      message: expect.stringMatching(/\(token\) was changed or moved(?!.*ada)/),
    }
    await expect(encrypted(sql, right, undefined, 'else').store.get('token:ada')).rejects.toMatchObject(moved)
    const move = `UPDATE kv SET value = (SELECT value FROM kv WHERE key = 'token:bob') WHERE key = 'token:ada'`
    await sql.write(() => fetchRows(move))
    await expect(store.get('token:ada')).rejects.toMatchObject(moved)
  })

  it('comes under the current key, so that the previous one can go', async () => {
    await using opened = await memory()
    const { sql } = opened
    const [before, after] = [newKey(), newKey()]
    const old = encrypted(sql, before)
    await checkKey(old.store)
    for (let i = 0; i < 1100; i++) await old.store.put(`key:${i}`, i)
    const { cipher, store } = encrypted(sql, after, before)
    await checkKey(store)
    expect(await countKeyUse(sql, cipher)).toEqual({ records: 1101, others: 1101 })
    expect(await store.get('key:7')).toBe(7)
    await rotateKey(sql, cipher)
    expect(await countKeyUse(sql, cipher)).toEqual({ records: 1101, others: 0 })
    const alone = encrypted(sql, after).store
    await checkKey(alone)
    expect(await alone.get('key:1099')).toBe(1099)
  })
})

it('exclusive work runs once at a time, in the turn of whoever waits, and is looked for meanwhile', async () => {
  await using opened = await memory()
  const { store } = opened
  let [running, done, most, busy] = [0, 0, 0, 0]
  const work = async (): Promise<number> => {
    most = Math.max(most, ++running)
    await new Promise(setImmediate)
    running--
    return ++done
  }
  const options = { what: 'counting', onBusy: () => void busy++ }
  const all = Array.from({ length: 5 }, () => withLock(store, 'lock', options, work))
  expect(new Set(await Promise.all(all))).toEqual(new Set([1, 2, 3, 4, 5]))
  expect([most, busy]).toEqual([1, 4])
  expect(await store.list('')).toEqual([])
  // Of two that stood still for longer than the lock lasts, the second has it now, and the first does not release it.
  await withLock(store, 'lock', options, () => store.put('lock', { id: 'another', pid: 7 }))
  const look = async (): Promise<number> => 42
  expect(await withLock(store, 'lock', { ...options, poll: look }, work)).toBe(42)
  const message = 'Another process is counting and did not finish in 0 s'
  const late = withLock(store, 'lock', { ...options, wait: 0 }, work)
  await expect(late).rejects.toMatchObject({ kind: 'timed_out', message })
  const stopped = withLock(store, 'lock', { ...options, signal: AbortSignal.abort() }, work)
  await expect(stopped).rejects.toMatchObject({ name: 'AbortError' })
  expect(await store.get('lock')).toEqual({ id: 'another', pid: 7 })
})

it('exclusive work that takes longer than its lock lasts renews it', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  await using opened = await memory()
  let now = 0
  const store = createStore(opened.sql, { clock: () => now })
  const options = { what: 'waiting', clock: () => now }
  const held = await withLock(store, 'lock', options, async () => {
    for (let beats = 0; beats < 5; beats++) {
      now += 4000
      vi.advanceTimersByTime(4000)
      await store.put('after', beats)
    }
    return store.get('lock')
  })
  vi.useRealTimers()
  expect(held).toMatchObject({ pid: process.pid })
})
