import { randomBytes } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { adoptKey, createEncryptedStore } from '../../src/store/encrypted-store.js'
import { createStore } from '../../src/store/kv.js'
import { openDatabase } from '../../src/store/open.js'
import { createRecordCipher } from '../../src/store/record-cipher.js'
import { emptyFolder } from '../helpers/context.js'
import { describeStore, type Open } from './contract.js'
import { describeLaw } from './law.js'

const key = (): Secret => new Secret(randomBytes(32).toString('base64'))
const ONE = key()
const OTHER = key()

const openRaw = () => openDatabase({ kind: 'memory', folder: emptyFolder() })

/** The raw store of an empty database, and the same with encryption. */
async function openBoth(keys = { current: ONE }, profile = 'default') {
  const database = await openRaw()
  const cipher = createRecordCipher(keys, profile)
  await adoptKey(database.sql, database.store, cipher)
  return { database, raw: database.store, cipher, store: createEncryptedStore(database.store, cipher) }
}

describe('an encrypted store', () => {
  const open: Open = async (clock = Date.now) => {
    const { sql } = await openRaw()
    const [raw, cipher] = [createStore(sql, clock), createRecordCipher({ current: ONE }, 'default')]
    await adoptKey(sql, raw, cipher)
    const store = createEncryptedStore(raw, cipher)
    const close = (): PromiseLike<void> => store[Symbol.asyncDispose]()
    return { sql, store, expectStep: () => () => ({ sql: '' }), [Symbol.asyncDispose]: close }
  }
  describeStore(open)
  describeLaw(open)

  it('shows nothing of a value, only its key', async () => {
    const { raw, store } = await openBoth()
    await store.put('token:alice', { accessToken: 'gho_canary' })
    const text = JSON.stringify(await raw.get('token:alice'))
    expect(text).not.toContain('canary')
    expect(Buffer.from(text, 'base64').toString('latin1')).not.toContain('canary')
  })

  it('refuses a record that was moved to another user, another kind or another profile', async () => {
    const { raw, store, database } = await openBoth()
    await store.put('token:mallory', 'hers')
    const stored = (await raw.get('token:mallory')) ?? null
    const elsewhere = createEncryptedStore(
      database.store,
      createRecordCipher({ current: ONE }, 'another profile'),
    )
    for (const moved of ['token:alice', 'origin:mallory', 'token:mallory ']) await raw.put(moved, stored)
    for (const moved of ['token:alice', 'origin:mallory', 'token:mallory '])
      await expect(store.get(moved)).rejects.toMatchObject({
        kind: 'storage',
        message: expect.not.stringContaining('mallory'),
      })
    await expect(elsewhere.get('token:mallory')).rejects.toMatchObject({ kind: 'storage' })
    expect(await store.get('token:mallory')).toBe('hers')
  })

  it('refuses a record in which any character was changed, and one that was never encrypted', async () => {
    const { raw, store } = await openBoth()
    await store.put('a', { some: 'value' })
    const stored = Object(await raw.get('a'))
    const bytes = Buffer.from(String(stored.data), 'base64')
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, mask) => {
        const changed = Buffer.from(bytes)
        changed[at] = (changed[at] ?? 0) ^ mask
        await raw.put('a', { ...stored, data: changed.toString('base64') })
        await expect(store.get('a')).rejects.toMatchObject({ kind: 'storage' })
      }),
    )
    for (const plain of ['text', { some: 'value' }, { ...stored, data: '' }, null]) {
      await raw.put('a', plain)
      await expect(store.get('a')).rejects.toMatchObject({ kind: 'storage' })
    }
  })

  it('takes no other key, and changes nothing when it is opened with one', async () => {
    const { database, raw, store } = await openBoth()
    await store.put('a', 1)
    const all = async () => database.sql.query('SELECT * FROM kv ORDER BY key')
    const before = await all()
    const wrong = createRecordCipher({ current: OTHER }, 'default')
    await expect(adoptKey(database.sql, raw, wrong)).rejects.toMatchObject({ kind: 'settings' })
    expect(await all()).toEqual(before)
  })

  it('encrypts again what is under the previous key, after which that key is not needed', async () => {
    const { database, raw, store } = await openBoth()
    const end = Date.now() + 3_600_000
    for (let i = 0; i < 1200; i++) await store.put(`key:${i}`, i, i % 2 ? { expiresAt: end } : {})
    const both = createRecordCipher({ current: OTHER, previous: ONE }, 'default')
    const during = createEncryptedStore(raw, both)
    expect(await during.get('key:7')).toBe(7)
    // What was read under the previous key can be expected.
    expect(
      await during.write([{ type: 'put', key: 'key:7', value: 'seven' }], [{ key: 'key:7', value: 7 }]),
    ).toBe(true)
    await adoptKey(database.sql, raw, both)
    const alone = createRecordCipher({ current: OTHER }, 'default')
    await adoptKey(database.sql, raw, alone)
    const after = createEncryptedStore(raw, alone)
    expect(await after.list('key:')).toHaveLength(1200)
    for (let i = 0; i < 1200; i++) expect(await after.get(`key:${i}`)).toBe(i === 7 ? 'seven' : i)
    const [row] = await database.sql.query('SELECT count(*) AS count FROM kv WHERE expires_at = ?', [end])
    // One of the 600 was put again without an end.
    expect(row).toEqual({ count: 599 })
  })
})
