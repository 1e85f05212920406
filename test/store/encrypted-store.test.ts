import { randomBytes } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Secret } from '../../src/base/secret.js'
import { checkEncryptionKey, createEncryptedStore } from '../../src/store/encrypted-store.js'
import { createStore, expectStep } from '../../src/store/kv.js'
import { openDatabase } from '../../src/store/open.js'
import { createRecordCipher } from '../../src/store/record-cipher.js'
import { countKeyUse } from '../../src/store/rotate.js'
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
  await checkEncryptionKey(database.store, cipher)
  const { sql, store: raw } = database
  return { database, sql, raw, cipher, store: createEncryptedStore({ store: raw, sql, cipher }) }
}

describe('an encrypted store', () => {
  const open: Open = async (clock = Date.now) => {
    const { sql } = await openRaw()
    const [raw, cipher] = [createStore(sql, clock), createRecordCipher({ current: ONE }, 'default')]
    await checkEncryptionKey(raw, cipher)
    const store = createEncryptedStore({ store: raw, sql, cipher })
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
    const { raw, store, sql } = await openBoth()
    await store.put('token:mallory', 'hers')
    const stored = (await raw.get('token:mallory')) ?? null
    const cipher = createRecordCipher({ current: ONE }, 'another profile')
    const elsewhere = createEncryptedStore({ store: raw, sql, cipher })
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
    await expect(checkEncryptionKey(raw, wrong)).rejects.toMatchObject({ kind: 'settings' })
    expect(await all()).toEqual(before)
  })

  it('encrypts again what is under the previous key, after which that key is not needed', async () => {
    const { sql, raw, store } = await openBoth()
    const end = Date.now() + 3_600_000
    for (let i = 0; i < 1200; i++) await store.put(`key:${i}`, i, i % 2 ? { expiresAt: end } : {})
    const both = createRecordCipher({ current: OTHER, previous: ONE }, 'default')
    await checkEncryptionKey(raw, both)
    const during = createEncryptedStore({ store: raw, sql, cipher: both })
    expect(await during.get('key:7')).toBe(7)
    // What was read under the previous key can be expected.
    expect(
      await during.write([{ type: 'put', key: 'key:7', value: 'seven' }], [{ key: 'key:7', value: 7 }]),
    ).toBe(true)
    // The check, and all but the one that was written.
    expect(await countKeyUse(sql, both)).toEqual({ records: 1201, others: 1200 })
    await during.sweep()
    const alone = createRecordCipher({ current: OTHER }, 'default')
    expect(await countKeyUse(sql, alone)).toEqual({ records: 1201, others: 0 })
    await checkEncryptionKey(raw, alone)
    const after = createEncryptedStore({ store: raw, sql, cipher: alone })
    expect(await after.list('key:')).toHaveLength(1200)
    for (let i = 0; i < 1200; i++) expect(await after.get(`key:${i}`)).toBe(i === 7 ? 'seven' : i)
    const [row] = await sql.query('SELECT count(*) AS count FROM kv WHERE expires_at = ?', [end])
    // One of the 600 was put again without an end.
    expect(row).toEqual({ count: 599 })
  })

  it('serves relays with the keys in either order at once, also what one of them expects', async () => {
    const { sql, raw } = await openBoth()
    const first = createRecordCipher({ current: ONE, previous: OTHER }, 'default')
    const second = createRecordCipher({ current: OTHER, previous: ONE }, 'default')
    const [one, two] = [first, second].map((cipher) => createEncryptedStore({ store: raw, sql, cipher }))
    await one?.put('instance', 'mine')
    await two?.sweep()
    const expected = first.expect('instance', 'mine')
    expect(await sql.transaction([expectStep(expected, Date.now())])).toHaveLength(1)
    expect(await one?.write([], [{ key: 'instance', value: 'mine' }])).toBe(true)
    expect(await one?.write([], [{ key: 'instance', value: 'another' }])).toBe(false)
    await one?.put('late', 'under the earlier key')
    expect(await countKeyUse(sql, second)).toMatchObject({ others: 1 })
    await two?.sweep()
    expect(await countKeyUse(sql, second)).toMatchObject({ others: 0 })
  })

  it('leaves a record that was moved as it is, and encrypts the others again', async () => {
    const { sql, raw, store } = await openBoth()
    for (const name of ['a', 'b', 'c']) await store.put(name, name)
    await raw.put('b', (await raw.get('a')) ?? null)
    const cipher = createRecordCipher({ current: OTHER, previous: ONE }, 'default')
    const rotating = createEncryptedStore({ store: raw, sql, cipher })
    await rotating.sweep()
    expect(await countKeyUse(sql, cipher)).toEqual({ records: 4, others: 1 })
    await expect(rotating.get('b')).rejects.toMatchObject({ kind: 'storage' })
    expect([await rotating.get('a'), await rotating.get('c')]).toEqual(['a', 'c'])
  })
})
