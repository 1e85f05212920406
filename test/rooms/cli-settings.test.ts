import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { joinSettings } from '../../src/cli/settings/join.js'
import { withDefaults } from '../../src/cli/settings/read.js'
import type { GivenValues } from '../../src/cli/settings/parse.js'
import { SETTING_NAMES, settingOf } from '../../src/cli/settings/table.js'
import { emptyFolder } from '../kit/folder.js'
import { type Given, load, rejection } from './cli-shell.js'

const folder = emptyFolder()
const secretFile = path.join(folder, 'secret')
writeFileSync(secretFile, 's3cret \n\n')
const A = 'https://a.example'
const LOCAL = 'http://localhost:1'
const WORK = { host: '::1', allowHost: ['a', 'b'], profiles: { work: { user: 'ada', host: '127.0.0.2' } } }
const NAMED = { profile: 'work', profiles: { work: { port: 1 }, shop: { port: 2 } } }
const SANDBOX = { sandbox: true }
const DOTENV = [
  'RELAY_PROFILE=shop',
  'RELAY_PROVIDER=gitea',
  'RELAY_PROVIDER_URL=https://git.example',
  'RELAY_CLIENT_SECRET="s"',
  'RELAY_WEBHOOK_SECRET_PREVIOUS_FILE=secret',
  'RELAY_FORWARD=http://localhost:3000',
  'RELAY_EXEC=./deploy.sh',
]
const OF_DOTENV: GivenValues = {
  profile: 'shop',
  provider: 'gitea',
  providerUrl: 'https://git.example',
  clientSecret: 's',
  // Less one line end.
  webhookSecretPrevious: 's3cret \n',
  forward: ['http://localhost:3000'],
  exec: ['./deploy.sh'],
}

describe('settings', () => {
  it.each<[string, Given, GivenValues]>([
    ['empty values', { env: { RELAY_PORT: '', RELAY_CLIENT_ID: '' } }, {}],
    ['BASE_URL', { env: { BASE_URL: `${A}/x/` } }, { baseUrl: `${A}/x/` }],
    ['RELAY_BASE_URL before BASE_URL', { env: { BASE_URL: A, RELAY_BASE_URL: LOCAL } }, { baseUrl: LOCAL }],
    [
      'that of .env before BASE_URL',
      { dotenv: `RELAY_BASE_URL=${LOCAL}`, env: { BASE_URL: A } },
      { baseUrl: LOCAL },
    ],
    ['BASE_URL before a file', { project: { baseUrl: LOCAL }, env: { BASE_URL: A } }, { baseUrl: A }],
    ['BASE_URL of this machine in .env', { dotenv: `BASE_URL=${LOCAL}` }, { baseUrl: LOCAL }],
    ['all that a project may set in .env, and secrets', { dotenv: DOTENV }, OF_DOTENV],
    ['of no other program', { dotenv: ['PATH=/evil', 'DATABASE_URL=x', 'RELAYS=1', 'RELAY_TUNNEL='] }, {}],
    [
      'what a project may set in relay.json',
      { project: { clientId: 'c', baseUrl: LOCAL, port: 8000, sandboxPort: '8001', maxBody: 5 } },
      { clientId: 'c', baseUrl: LOCAL, port: 8000, sandboxPort: 8001, maxBody: 5 },
    ],
    ["config.json's section of another profile", { user: WORK }, { host: '::1', allowHost: ['a', 'b'] }],
    [
      "config.json's section of the profile",
      { flags: { profile: 'work' }, user: WORK },
      { profile: 'work', host: '127.0.0.2', user: 'ada', allowHost: ['a', 'b'] },
    ],
    ['a profile that config.json names', { user: NAMED }, { profile: 'work', port: 1 }],
    [
      'a profile that the project names',
      { project: { profile: 'shop' }, user: NAMED },
      { profile: 'shop', port: 2 },
    ],
    ['a folder of the home folder', { user: { home: '~/data' } }, { home: path.join(homedir(), 'data') }],
    [
      "the sandbox's profile, whatever files name",
      { flags: SANDBOX, user: NAMED, project: { profile: 'shop' } },
      { profile: 'sandbox' },
    ],
    ['a named profile of the sandbox', { flags: SANDBOX, env: { RELAY_PROFILE: 'b' } }, { profile: 'b' }],
  ])('are read: %s', async (_, given, values) => {
    const cwd = emptyFolder()
    copyFileSync(secretFile, path.join(cwd, 'secret'))
    const loaded = await load(given, { cwd })
    expect([loaded.values, loaded.warnings]).toEqual([withDefaults(values), []])
  })

  it.each([
    [{ env: { BASE_URL: '/' } }, '', '', ''],
    [{ dotenv: `BASE_URL=${A}` }, ' in .env', ' on this machine', ' in the environment'],
  ])("ignore another program's %j with a warning", async (given, place, where, other) => {
    const warning = `BASE_URL${place} is ignored: it is no absolute http:// or https:// address${where} (RELAY_BASE_URL${other} sets it for relay alone)`
    expect(await load(given)).toMatchObject({ values: withDefaults({}), warnings: [warning] })
  })

  it('are none in a .env that is a folder, which is Python’s', async () => {
    const cwd = emptyFolder()
    mkdirSync(path.join(cwd, '.env'))
    expect((await load({}, { cwd })).values).toEqual(withDefaults({}))
  })

  it('of config.json can be in files next to it', async () => {
    const configFolder = emptyFolder()
    writeFileSync(path.join(configFolder, 'client-secret'), 's3cret\n')
    const user = { clientSecretFile: 'client-secret', home: 'data' }
    const { values, origins } = await load({ user }, { configFolder })
    expect(values).toMatchObject({ clientSecret: 's3cret', home: path.join(configFolder, 'data') })
    expect(origins.clientSecret?.text).toBe(`clientSecretFile in ${configFolder}/config.json`)
  })
})

describe('the order of settings', () => {
  const places = {
    flags: { port: '1' },
    env: { RELAY_PORT: '2' },
    dotenv: 'RELAY_PORT=3',
    project: { port: 4 },
    user: { port: 6, profiles: { default: { port: 5 } } },
  }

  const names = ['--port', 'RELAY_PORT', 'RELAY_PORT in .env', 'port in', 'profiles.default.port in']

  it.each(names.map((name, i) => [i, name] as const))(
    '%i: %s wins over what comes after it, and is its origin',
    async (skipped, origin) => {
      const { values, origins } = await load(Object.fromEntries(Object.entries(places).slice(skipped)))
      expect(values.port).toBe(skipped + 1)
      expect(origins.port?.text.startsWith(origin)).toBe(true)
    },
  )

  it('of relay.json is that of the folders up to the root of the checkout', async () => {
    const root = emptyFolder()
    const cwd = path.join(root, 'a', 'b')
    const port = async () => (await load({}, { cwd })).values.port
    mkdirSync(cwd, { recursive: true })
    writeFileSync(path.join(root, 'relay.json'), '{"port":1}')
    expect(await port()).toBe(8787)
    mkdirSync(path.join(root, '.git'))
    expect(await port()).toBe(1)
    writeFileSync(path.join(root, 'a', 'relay.json'), '{"port":2}')
    expect(await port()).toBe(2)
    mkdirSync(path.join(cwd, '.git'))
    expect(await port()).toBe(8787)
  })
})

const PROJECT = 'cannot be set by a project: set it'

/** By the place, what it says, and what is wrong with that. */
const REFUSED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  environment: {
    'RELAY_PORT=65536': 'RELAY_PORT: must be a whole number from 0 to 65535',
    'RELAY_MAX_BODY=26214401': 'RELAY_MAX_BODY: must be a whole number from 1 to 26214400',
    'RELAY_TOKEN_TTL=30': 'RELAY_TOKEN_TTL: must be a duration such as 12h or 30d',
    'RELAY_BASE_URL=/': 'RELAY_BASE_URL: must be an absolute http:// or https:// address',
    'RELAY_PUBLIC_URL=javascript:1': 'RELAY_PUBLIC_URL: must be an absolute http:// or https:// address',
    'RELAY_PUBLIC_URL=https://a/?b=1': 'RELAY_PUBLIC_URL: must not contain a query or a fragment',
    'RELAY_PROFILE=.x': 'RELAY_PROFILE: must be 1–64 letters, digits, ".", "_" or "-", not starting with "."',
    'RELAY_ALLOWED_HOSTS=a,,b': 'RELAY_ALLOWED_HOSTS: must be host names, separated by commas',
    'RELAY_WEBHOOK_SECRET_FILE=/dev/null': 'RELAY_WEBHOOK_SECRET_FILE: /dev/null is empty',
    'RELAY_CLIENT_SECRET_FILE=/nowhere/x': 'RELAY_CLIENT_SECRET_FILE: /nowhere/x cannot be read',
  },
  '.env': {
    'RELAY_HOST=x': `.env: RELAY_HOST ${PROJECT} in the environment, or with --host, or as host in config.json`,
    'RELAY_TOKEN_TTL=x': `.env: RELAY_TOKEN_TTL ${PROJECT} in the environment, or as tokenTtl in config.json`,
    'RELAY_DEBUG=x': `.env: RELAY_DEBUG ${PROJECT} in the environment`,
    'RELAY_PROT=1': '.env: RELAY_PROT is not a setting (did you mean RELAY_PORT?)',
    'RELAY_SECRET=x': '.env: RELAY_SECRET is not a setting (did you mean RELAY_WEBHOOK_SECRET?)',
    'RELAY_FORWARD_FILE=x': '.env: RELAY_FORWARD_FILE is not a setting',
    'RELAY_FORWARD=push=https://evil.example':
      "RELAY_FORWARD in .env: must be on this machine in a project's file: RELAY_FORWARD in the environment sets any other",
    'RELAY_PORT=x': 'RELAY_PORT in .env: must be a whole number from 0 to 65535',
  },
  'relay.json': {
    '{\n  "a": 1\n  "b": 2\n}': 'relay.json, line 3: not JSON',
    '[]': 'relay.json: must be one JSON object, { … }',
    null: 'relay.json: must be one JSON object, { … }',
    '{"prot":1}': 'relay.json: prot is not a setting (did you mean port?)',
    '{"RELAY_PORT":1}': 'relay.json: RELAY_PORT is not a setting (did you mean port?)',
    '{"targets":["3000"]}': 'relay.json: targets is not a setting (did you mean forward?)',
    '{"constructor":1}': 'relay.json: constructor is not a setting',
    '{"port":65536}': 'port in relay.json: must be a whole number from 0 to 65535',
    '{"port":true}': 'port in relay.json: must be a text, a number, or a list of texts',
    '{"port":["8080"]}': 'port in relay.json: must be a text',
    '{"exec":5}': 'exec in relay.json: must be a text',
    '{"clientId":12345}': 'clientId in relay.json: must be a text',
    '{"provider":["gitea"]}': 'provider in relay.json: must be a text',
    '{"clientId":""}': 'clientId in relay.json: must not be empty: leave it out instead',
    '{"clientSecret":"canary"}': `relay.json: clientSecret ${PROJECT} with RELAY_CLIENT_SECRET or RELAY_CLIENT_SECRET_FILE`,
    '{"webhookSecretFile":"/etc/passwd"}': `relay.json: webhookSecretFile ${PROJECT} with RELAY_WEBHOOK_SECRET or RELAY_WEBHOOK_SECRET_FILE`,
    '{"host":"0.0.0.0"}': `relay.json: host ${PROJECT} with --host or RELAY_HOST`,
    '{"profiles":{}}': 'relay.json: profiles can only be set in your own config.json',
    '{"baseUrl":"https://evil.example"}':
      "baseUrl in relay.json: must be on this machine in a project's file: RELAY_BASE_URL in the environment sets any other",
  },
  'config.json': {
    '{"user":["a","b"]}': 'user in config.json: must be a text',
    '{"clientSecret":"canary"}':
      'config.json: clientSecret is a secret: name a file that holds it as clientSecretFile',
    '{"clientSecretFile":"/nowhere/x"}': 'clientSecretFile in config.json: /nowhere/x cannot be read',
    '{"clientSecretFil":"x"}':
      'config.json: clientSecretFil is not a setting (did you mean clientSecretFile?)',
    '{"secret":"x"}': 'config.json: secret is not a setting (did you mean webhookSecretFile?)',
    '{"tunnelFile":"x"}': 'config.json: tunnelFile is not a setting',
    '{"profiles":[]}': 'config.json: profiles must be an object of profiles',
    '{"profiles":{"a":1}}': 'config.json: profiles.a must be an object of settings',
    '{"profiles":{"a":{"prot":1}}}': 'config.json: profiles.a.prot is not a setting (did you mean port?)',
    '{"profiles":{"a":{"profile":"b"}}}': 'config.json: profiles.a.profile cannot be set for one profile',
  },
}

/** What is wrong with what a place says, with the folders of files taken out. */
async function wrong(place: string, text: string): Promise<string> {
  const [cwd, configFolder] = [emptyFolder(), emptyFolder()]
  const [name = '', ...value] = text.split('=')
  if (place.endsWith('.json'))
    writeFileSync(path.join(place === 'relay.json' ? cwd : configFolder, place), text)
  const given = place === 'environment' ? { env: { [name]: value.join('=') } } : {}
  const dotenv = place === '.env' ? { dotenv: ['A=1', text] } : {}
  const { kind, message } = await rejection(() => load({ ...given, ...dotenv }, { cwd, configFolder }))
  expect(kind).toBe('settings')
  return String(message).replaceAll(`${cwd}/`, '').replaceAll(`${configFolder}/`, '')
}

describe.each(Object.entries(REFUSED))('a setting is refused in %s', (place, lines) => {
  it.each(Object.entries(lines))('%s', async (text, message) => {
    expect(await wrong(place, text)).toBe(message)
  })
})

it('a setting is refused in a project, whose author can be anyone, unless it is harmless there', async () => {
  const refused = SETTING_NAMES.filter((name) => !settingOf(name).project && !settingOf(name).secret)
  expect(refused.join(' ')).toBe(
    'home user host allowHost inspectHost metrics logFormat publicUrl store tokenTtl keep keepMax tunnel',
  )
  for (const name of refused) {
    expect(await wrong('.env', `${settingOf(name).env}=x`)).toContain('cannot be set by a project')
    expect(await wrong('relay.json', `{"${name}":"x"}`)).toContain('cannot be set by a project')
  }
})

it.each(['storePassword', 'tokenKey', 'tokenKeyPrevious'] as const)(
  '.env does not set %s where the user has: it is of the store, which only the user names',
  async (name) => {
    const [of, mine] = ['b'.repeat(32), 'a'.repeat(32)].map((text) => Buffer.from(text).toString('base64'))
    const file = path.join(emptyFolder(), 'own')
    writeFileSync(file, mine ?? '')
    const dotenv = `${settingOf(name).env}=${of}`
    expect((await load({ dotenv })).values[name]).toBe(of)
    expect((await load({ dotenv, user: { [`${name}File`]: file } })).values[name]).toBe(mine)
  },
)

describe('a client secret', () => {
  const url = 'https://git.example'
  const here = { project: { providerUrl: url } }
  const secret = { RELAY_CLIENT_SECRET: 'canary' }
  const inFolder = 'RELAY_CLIENT_SECRET=canary'

  it.each<Given>([
    { ...here, env: secret, flags: { providerUrl: url } },
    { ...here, env: { ...secret, RELAY_PROVIDER_URL: url } },
    { ...here, dotenv: inFolder, user: { providerUrl: url } },
    { ...here, dotenv: inFolder, user: { profiles: { default: { providerUrl: `${url}/` } } } },
    { env: secret },
    { dotenv: inFolder },
  ])('is used where the user says: %j', async (given) => {
    const { values, hostRefusal } = joinSettings({ own: await load(given) })
    expect([values.clientSecret, hostRefusal]).toEqual(['canary', undefined])
  })
})
