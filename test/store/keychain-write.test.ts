import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '../../src/base/time.js'
import type { Store } from '../../src/store/contract.js'
import { createKeychain, type Keychain } from '../../src/store/keychain.js'
import { createKeychainStore } from '../../src/store/keychain-store.js'
import { createStore } from '../../src/store/kv.js'
import { MEMORY, openEngine } from '../../src/store/open-engine.js'
import { createLock } from '../../src/store/lock.js'
import { encode } from '../../src/store/keychain-records.js'
import { createTokens } from '../../src/tokens/tokens.js'
import { type Keyring, startKeyring } from '../helpers/keyring.js'
import { describeWith } from '../kit/needs.js'

const ORIGIN = 'https://github.com'
const ENDS = 4_102_444_800_000

describeWith('keyring', 'a write over keychain and file', () => {
  let keyring: Keyring
  let keychain: Keychain
  let file: Store
  let store: Store
  let broken: 'nothing' | 'file' | 'keychain'

  beforeEach(async () => {
    keyring = await startKeyring()
    const engine = await openEngine(MEMORY)
    keychain = createKeychain({ service: 'relay:profile', env: keyring.env })
    file = createStore(engine, systemClock)
    broken = 'nothing'
    const noRoom = async (): Promise<never> => {
      throw new Error('no room')
    }
    store = createKeychainStore({
      file: { ...file, write: (...args) => (broken === 'file' ? noRoom() : file.write(...args)) },
      keychain: { ...keychain, delete: (key) => (broken === 'keychain' ? noRoom() : keychain.delete(key)) },
      lock: createLock(file),
      clock: systemClock,
      prefixes: ['token:', 'refresh:'],
    })
  })
  afterEach(async () => {
    await store[Symbol.asyncDispose]()
    await keyring[Symbol.asyncDispose]()
  })

  const signIn = (accessToken: string) => ({
    accessToken,
    expiresAt: ENDS,
    refreshToken: `refresh ${accessToken}`,
    origin: ORIGIN,
  })
  const holder = (accessToken: string) => ({ userId: 'ada', accessToken, expiresAt: ENDS, origin: ORIGIN })
  const entries = async () =>
    (await keychain.find())
      .map(({ key }) => key)
      .filter((key) => key !== 'relay')
      .toSorted()

  it('that fails in the file leaves the token there was', async () => {
    const tokens = createTokens(store)
    await tokens.save('ada', signIn('old'))
    broken = 'file'
    await expect(tokens.save('ada', signIn('new'))).rejects.toThrow('no room')
    await expect(tokens.save('bob', signIn('new'))).rejects.toThrow('no room')
    broken = 'nothing'
    expect(await tokens.findByBearer('old')).toEqual(holder('old'))
    expect(await tokens.findByBearer('new')).toBeUndefined()
    expect(await store.get('refresh:ada')).toEqual({ refreshToken: 'refresh old', origin: ORIGIN })
    expect(await entries()).toEqual(['refresh:ada', 'token:ada'])
  })

  it('that is refused for what the file holds leaves the keychain as it was', async () => {
    await store.put('token:ada', 1)
    const operations = [
      { type: 'put', key: 'token:ada', value: 2 },
      { type: 'put', key: 'token:bob', value: 2 },
      { type: 'delete', key: 'token:ada' },
    ] as const
    expect(await store.write(operations, [{ key: 'instance', value: 'another' }])).toBe(false)
    expect(await store.get('token:ada')).toBe(1)
    expect(await entries()).toEqual(['token:ada'])
  })

  it('that cannot delete from the keychain has taken its index: the token is no longer of use', async () => {
    const tokens = createTokens(store)
    await tokens.save('ada', signIn('token'))
    broken = 'keychain'
    await expect(tokens.revoke('ada')).rejects.toThrow('no room')
    expect(await file.list('')).toEqual(['keychain-used'])
    expect(await tokens.get('ada')).toBeUndefined()
    expect(await tokens.findByBearer('token')).toBeUndefined()
    broken = 'nothing'
    expect(await tokens.revoke('ada')).toBe(true)
    expect(await entries()).toEqual([])
  })

  it('that was cut off before the file leaves a record revoke removes, of no use before', async () => {
    const record = { accessToken: 'token', expiresAt: new Date(ENDS).toISOString() }
    await keychain.set('token:ada', encode(record, { expiresAt: ENDS }))
    const tokens = createTokens(store)
    expect(await tokens.get('ada')).toBeUndefined()
    expect(await tokens.findByBearer('token')).toBeUndefined()
    expect(await tokens.revoke('ada')).toBe(true)
    expect(await entries()).toEqual([])
    expect(await tokens.revoke('ada')).toBe(false)
  })

  it('whose record was removed in the keychain itself leaves an index that finds no user', async () => {
    const tokens = createTokens(store)
    await tokens.save('ada', signIn('token'))
    await keychain.delete('token:ada')
    expect(await tokens.findByBearer('token')).toBeUndefined()
    await tokens.save('ada', signIn('next'))
    expect(await tokens.findByBearer('next')).toEqual(holder('next'))
  })

  it('takes what the file store had of the same secret before', async () => {
    await file.put('token:ada', 'from before')
    await file.put('refresh:ada', 'from before')
    expect(await store.get('token:ada')).toBeUndefined()
    expect(await store.list('')).toEqual([])
    await createTokens(store).save('ada', { ...signIn('token'), refreshToken: undefined })
    expect(await file.get('token:ada')).toBeUndefined()
    expect(await file.get('refresh:ada')).toBeUndefined()
  })

  it('takes an entry that someone else has made for none', async () => {
    for (const text of [
      'not JSON',
      'null',
      '{"v":2,"value":1}',
      '{"v":1}',
      '{"v":1,"value":1,"expiresAt":null}',
    ]) {
      await keychain.set('token:ada', text)
      expect(await store.get('token:ada')).toBeUndefined()
      expect(await store.list('token:')).toEqual([])
      expect(await store.putIfAbsent('token:ada', 1)).toBe(true)
    }
  })
})
