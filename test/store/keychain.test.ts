import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createKeychain } from '../../src/store/keychain.js'
import { type KeychainSettings, openDatabase } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { type Keyring, startKeyring } from '../helpers/keyring.js'
import { describeWith } from '../kit/needs.js'
import { describeStore, type Open } from './contract.js'
import { describeLaw } from './law.js'

describeWith('keyring', 'the keychain store', () => {
  let keyring: Keyring
  beforeAll(async () => void (keyring = await startKeyring()))
  afterAll(() => keyring[Symbol.asyncDispose]())

  const openAt = (folder: string, settings: KeychainSettings = {}, clock?: () => number) =>
    openDatabase({ kind: 'keychain', folder, clock, keychain: { ...settings, env: keyring.env } })
  const open =
    (...prefixes: string[]): Open =>
    (clock) =>
      openAt(path.join(emptyFolder(), randomUUID()), { prefixes }, clock)

  describe('with every record in the keychain', () => {
    describeStore(open(''), 20)
  })
  describe('with some records in the keychain', () => {
    describeLaw(open('a', 'é'), 10)
  })

  it('keeps tokens, refresh tokens and what setup registered under the service of the profile, and all else in the file', async () => {
    const folder = path.join(emptyFolder(), randomUUID())
    await using database = await openAt(folder)
    const { store } = database
    await store.put('token:ada', { accessToken: 'secret' }, { expiresAt: 4_102_444_800_000 })
    await store.put('refresh:ada', { refreshToken: 'secret' })
    await store.put('origin:ada', 'file')
    await store.put('setup:secret', 'secret')
    expect(await store.list('')).toEqual(['origin:ada', 'refresh:ada', 'setup:secret', 'token:ada'])

    await using keychain = createKeychain({ service: `relay:${path.basename(folder)}`, env: keyring.env })
    const entries = await keychain.find()
    expect(entries.toSorted((a, b) => a.key.localeCompare(b.key))).toEqual([
      { key: 'refresh:ada', text: '{"v":1,"value":{"refreshToken":"secret"}}' },
      { key: 'relay', text: 'Shows that the keychain is unlocked' },
      { key: 'setup:secret', text: '{"v":1,"value":"secret"}' },
      { key: 'token:ada', text: '{"v":1,"value":{"accessToken":"secret"},"expiresAt":4102444800000}' },
    ])
    await using file = await openDatabase({ kind: 'file', folder })
    expect(await file.store.list('')).toEqual(['keychain-used', 'origin:ada'])
  })
})
