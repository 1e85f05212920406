import path from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { readSavedProfile } from '../../src/instance/profile.js'
import { attach, publication, webhookSecret } from '../../src/cli/profile.js'
import { openSession, serviceSettings } from '../../src/cli/session.js'
import { openSettings } from '../../src/cli/settings/read.js'
import { serve, type Serving } from '../../src/serve/serve.js'
import type { Store } from '../../src/store/kv.js'
import { openDatabase } from '../../src/store/open.js'
import { startSandbox, type TestSandbox } from '../../src/testing/index.js'
import { type Grant, grantAt } from '../../src/testing/sandbox.js'
import { Tokens } from '../../src/tokens/tokens.js'
import { makeProfileSecret } from '../../src/webhook/profile-secret.js'
import { emptyFolder, type Env } from '../kit/folder.js'
import { CLIENT, hostVariables, USER } from '../kit/place.js'
import { testShell } from './cli-shell.js'

let sandbox: TestSandbox & AsyncDisposable
let grant: Grant
let env: Env
beforeEach(async () => {
  sandbox = await startSandbox({ client: CLIENT, lifetimes: { access: 3600, refresh: 7200 } })
  grant = await grantAt(sandbox.url, CLIENT)
  env = { RELAY_HOME: emptyFolder(), RELAY_USER: USER, ...hostVariables('sandbox', sandbox.url, CLIENT) }
  await expire(Date.now() + 86_400_000)
})
afterEach(() => sandbox[Symbol.asyncDispose]())

/** The store of the profile, as another process has it open. */
async function profileStore(): Promise<Store & AsyncDisposable> {
  const folder = path.join(env['RELAY_HOME'] ?? '', 'default')
  const database = await openDatabase({ kind: 'file', folder })
  return { ...database.store, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}

/** The service of the settings in this process, which commands find as they find `relay serve`. */
async function serveHere(): Promise<Serving> {
  const shell = shellOf({ RELAY_PORT: '0' })
  const own = openSettings(shell, {}).read()
  const { onTaken } = publication(shell, own)
  return serve(serviceSettings({ own }, { sandbox: false, inspect: true }), { onTaken })
}

/** Has the user's token end at an instant, with a refresh token to renew it. */
async function expire(at: number): Promise<void> {
  await using store = await profileStore()
  const { access_token: accessToken, refresh_token: refreshToken } = grant
  const refresh = { refreshToken, refreshExpiresAt: Date.now() + 86_400_000 }
  await new Tokens(store).save(USER, { accessToken, expiresAt: at, origin: sandbox.url, ...refresh })
}

const shellOf = (more = {}) => testShell({ env: { ...env, ...more } }).shell
const NO_CLIENT = { RELAY_CLIENT_ID: undefined, RELAY_CLIENT_SECRET: undefined }

it('has the token as it is while it lasts, the code host and the journal', async () => {
  const shell = shellOf()
  await using session = await openSession(shell, await attach(shell, {}))
  expect(await session.owner()).toMatchObject({ accessToken: grant.access_token, userId: USER })
  expect(session.host.url).toBe(sandbox.url)
  expect(await session.journal.newest()).toBe(0)
  session.remember()
  expect(readSavedProfile(session.attached.folder)).toMatchObject({ providerUrl: sandbox.url })
})

it('renews with this shell’s client or, without one, by the instance', async () => {
  await expire(Date.now())
  const own = shellOf()
  await using alonePart = await openSession(own, await attach(own, {}))
  const renewed = await alonePart.owner()
  expect(renewed.accessToken).not.toBe(grant.access_token)
  await using store = await profileStore()
  const tokens = new Tokens(store)
  const used = await tokens.refreshable(USER)
  if (!used) throw new Error('the sandbox gives refresh tokens')
  await tokens.renew(USER, used, { ...renewed, ...used, expiresAt: Date.now() })
  await using _serving = await serveHere()
  const other = shellOf(NO_CLIENT)
  await using session = await openSession(other, await attach(other, {}))
  expect(session.client).toBeUndefined()
  const again = await session.owner()
  expect(again.accessToken).not.toBe(renewed.accessToken)
})

it('has the webhook secret of a variable, the settings, the instance or the profile, in this order', async () => {
  const from = async (env = {}, secretEnv?: string) => {
    const shell = shellOf(env)
    const found = await webhookSecret(shell, await attach(shell, {}), { secretEnv })
    return found && [found.secret.reveal(), found.place]
  }
  expect(await from()).toBeUndefined()
  {
    await using store = await profileStore()
    await makeProfileSecret(store)
    expect(await makeProfileSecret(store)).toEqual(await makeProfileSecret(store))
  }
  const [made = ''] = (await from()) ?? []
  expect(made).toMatch(/^[0-9a-f]{64}$/)
  expect(await from()).toEqual([made, 'profile'])
  const both = { RELAY_WEBHOOK_SECRET: 'set', OTHER: 'other' }
  expect(await from(both)).toEqual(['set', 'RELAY_WEBHOOK_SECRET'])
  expect(await from(both, 'OTHER')).toEqual(['other', 'OTHER'])
  await expect(from({}, 'NONE')).rejects.toMatchObject({ message: '--secret-env: NONE is not set' })
})

it('finds what is missing for a service before it makes a profile', () => {
  const { shell } = testShell({ env: { RELAY_HOME: emptyFolder(), RELAY_PROVIDER: 'gitea' } })
  const own = openSettings(shell, {}).read()
  expect(() => serviceSettings({ own }, { sandbox: false, inspect: true })).toThrow(
    'RELAY_PROVIDER_URL is not set',
  )
  expect(() => serviceSettings({ own }, { sandbox: true, inspect: true })).not.toThrow()
})
