import { expect, it } from 'vitest'
import { saveSetup } from '../../src/auth/setup.js'
import { anywhere } from '../../src/base/command-line.js'
import { Secret } from '../../src/base/secret.js'
import { openProfile } from '../../src/cli/profile.js'
import { createInstanceRecord, type RunningInstance } from '../../src/instance/protocol.js'
import { serviceSettings } from '../../src/cli/commands/serve/settings.js'
import { joinSettings, type Parts } from '../../src/cli/settings/join.js'
import { emptyFolder } from '../kit/folder.js'
import { load, testShell } from './cli-shell.js'

const A = 'https://a.example'
const B = 'https://b.example'
const C = 'https://c.example'
const HUB = 'https://github.com'

const given = async (env: Record<string, string>): Promise<Parts['own']> => load({ env })
const none = await given({})
const own = await given({ RELAY_PROVIDER: 'gitea', RELAY_PROVIDER_URL: A })
const client = await given({ RELAY_CLIENT_ID: 'mine', RELAY_CLIENT_SECRET: 'canary' })
const other = await given({ RELAY_CLIENT_ID: 'other' })
const setup: NonNullable<Parts['setup']> = {
  provider: 'gitea',
  providerUrl: B,
  clientId: 'stored',
  client: { id: 'stored', secret: new Secret('canary') },
}
const saved: Parts['saved'] = { v: 1, store: 'keychain', provider: 'gitea', providerUrl: C, sandbox: false }
const unnamed: Parts['saved'] = { ...saved, provider: null, providerUrl: null }
const url = 'http://127.0.0.1:8787'
const instance: RunningInstance = {
  ...createInstanceRecord({ pid: 7, url, profile: 'default' }),
  startedAt: new Date(0).toISOString(),
  publicUrl: url,
  provider: 'gitea',
  providerUrl: B,
  clientId: null,
  maxBody: 1,
  store: 'memory',
  sandbox: false,
  secretPrint: '',
  madeSecret: null,
  hooks: [],
  sources: [],
  targets: [],
  tunnels: [],
}
const elsewhere = { ...instance, providerUrl: C }
const withClient = { ...instance, clientId: 'its' }

it.each<[string, Parts, readonly [host: string | undefined, store: string, client: string | undefined]]>([
  ['nothing', { own: none }, [HUB, 'file', undefined]],
  ['the last use', { own: none, saved }, [C, 'keychain', undefined]],
  ['a last use of a host that a folder named', { own: none, saved: unnamed }, [HUB, 'keychain', undefined]],
  ['setup, and the last use', { own: none, saved, setup }, [B, 'keychain', 'stored']],
  ['a variable for the host, setup, and the last use', { own, saved, setup }, [A, 'keychain', undefined]],
  [
    'a variable for the kind of host alone',
    { own: await given({ RELAY_PROVIDER: 'gitea' }), saved, setup },
    [undefined, 'keychain', undefined],
  ],
  ['a variable for the store', { own: await given({ RELAY_STORE: 'file' }), saved }, [C, 'file', undefined]],
  ['variables for the client, and setup', { own: client, setup }, [B, 'file', 'mine']],
  [
    "an id that is setup's",
    { own: await given({ RELAY_CLIENT_ID: 'stored' }), setup },
    [B, 'file', 'stored'],
  ],
  ['another id', { own: other, setup }, [B, 'file', undefined]],
  ['an instance, whatever else there is', { own, saved, setup, instance }, [B, 'memory', 'stored']],
  ['an instance at another host than setup', { own, setup, instance: elsewhere }, [C, 'memory', undefined]],
  ['an instance with another client', { own, setup, instance: withClient }, [B, 'memory', undefined]],
])('settings of %s', (_, parts, joined) => {
  const { values } = joinSettings(parts)
  const id = values.clientSecret === undefined ? undefined : values.clientId
  expect([values.providerUrl, values.store, id]).toEqual(joined)
})

it('leaves out an id that the instance has the secret of, and refuses a kind of host that it does not know', () => {
  expect(joinSettings({ own: other, instance: withClient }).values.clientId).toBeUndefined()
  expect(() => joinSettings({ own: other, instance: { ...instance, provider: 'forge' } })).toThrow(
    'Process 7 serves the code host forge, which this version of relay does not know',
  )
})

it('finds what is missing for a service before it makes a profile', async () => {
  const missing = await load({ env: { RELAY_PROVIDER: 'gitea' }, user: { home: 'none' } })
  const settingsOf = (sandbox: boolean) =>
    serviceSettings(
      { own: missing },
      { sandbox, inspect: true, readSources: async () => [], rereadParts: () => expect.unreachable() },
    )
  expect(() => settingsOf(false)).toThrow('RELAY_PROVIDER_URL is not set')
  expect(() => settingsOf(true)).not.toThrow()
})

it.each(['open', 'create'] as const)(
  'joins what relay setup stored once the data is open: %s',
  async (data) => {
    const env = { RELAY_HOME: emptyFolder() }
    await using created = await openProfile(
      testShell({ env }).shell,
      {},
      { mustExist: false, data: 'create' },
    )
    const { provider, providerUrl, client: stored } = setup
    const place = { provider, providerUrl, app: undefined, hookUrl: undefined }
    await saveSetup(created.database.secrets, { ...place, client: stored }, undefined, anywhere)
    await using opened = await openProfile(testShell({ env }).shell, {}, { mustExist: false, data })
    const { values, origins } = opened
    const { id, secret } = stored
    expect(values).toMatchObject({ provider, providerUrl, clientId: id, clientSecret: secret.reveal() })
    expect(origins.clientSecret).toEqual({ kind: 'setup', text: 'setup' })
  },
)
