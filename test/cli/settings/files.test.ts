import { mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.js'
import { withDefaults } from '../../../src/old/settings/complete.js'
import type { GivenValues } from '../../../src/old/settings/options.js'
import { prepare } from '../../../src/old/settings/prepare.js'
import { readOptions, type Flags } from '../../../src/old/settings/read.js'
import { emptyFolder, testContext } from '../../helpers/context.js'
import { failure } from '../../helpers/failure.js'

interface Given {
  readonly project?: unknown
  readonly user?: unknown
  readonly dotenv?: string
  readonly env?: Record<string, string>
  readonly flags?: Flags
}

function setUp({ project, user, dotenv, env = {} }: Given) {
  const { context } = testContext({ env })
  const files = {
    project: path.join(context.cwd, 'relay.json'),
    user: path.join(context.configFolder, 'config.json'),
  }
  if (project !== undefined) writeFileSync(files.project, JSON.stringify(project))
  if (user !== undefined) writeFileSync(files.user, JSON.stringify(user))
  if (dotenv !== undefined) writeFileSync(path.join(context.cwd, '.env'), dotenv)
  return { context, ...files }
}

function read(given: Given) {
  const { context } = setUp(given)
  return readOptions(context, given.flags ?? {}, silentLog)
}

/** What is wrong, with the place of the file taken out. */
function wrong(given: Given): string {
  const { context, project, user } = setUp(given)
  const { kind, message } = failure(() => readOptions(context, given.flags ?? {}, silentLog))
  expect(kind).toBe('settings')
  return String(message).replaceAll(project, 'relay.json').replaceAll(user, 'config.json')
}

describe('the order of settings', () => {
  const places = {
    flags: { port: '1' },
    env: { RELAY_PORT: '2' },
    dotenv: 'RELAY_PORT=3',
    project: { port: 4 },
    user: { port: 6, profiles: { default: { port: 5 } } },
  }
  const kinds = ['flag', 'environment', 'dotenv', 'project', 'user', 'user']

  it.each(kinds.map((kind, i) => [kind, i] as const))('%s wins over what comes after it', (kind, skipped) => {
    const entries = Object.entries(places).slice(skipped)
    const left: Given = skipped === 5 ? { user: { port: 6 } } : Object.fromEntries(entries)
    const { options, origins } = read(left)
    expect({ port: options.port, kind: origins.port?.kind }).toEqual({ port: skipped + 1, kind })
  })

  it('reports where each value came from', () => {
    const given = { ...places, flags: {}, env: { RELAY_HOST: '::1' }, user: { store: 'memory' } }
    const { context, user } = setUp(given)
    expect(readOptions(context, {}, silentLog)).toEqual({
      options: withDefaults({ host: '::1', port: 3, store: 'memory' }),
      origins: {
        host: { kind: 'environment', text: 'RELAY_HOST' },
        port: { kind: 'dotenv', text: 'RELAY_PORT in .env' },
        store: { kind: 'user', text: `store in ${user}` },
      },
    })
  })

  it('prefers BASE_URL to a file, and RELAY_BASE_URL to BASE_URL', () => {
    const project = { baseUrl: 'http://localhost:1' }
    expect(read({ project, env: { BASE_URL: 'https://a.example' } }).options.baseUrl).toBe(
      'https://a.example',
    )
    expect(read({ project, env: { BASE_URL: '/' } }).options.baseUrl).toBe('http://localhost:1')
    const both = { dotenv: 'RELAY_BASE_URL=http://localhost:2', env: { BASE_URL: 'https://a.example' } }
    expect(read(both).options.baseUrl).toBe('http://localhost:2')
  })
})

describe('relay.json', () => {
  it('sets what a project may', () => {
    const project: GivenValues = {
      profile: 'shop',
      provider: 'gitea',
      providerUrl: 'https://git.example',
      clientId: 'c',
      baseUrl: 'http://localhost:3000',
      port: 8000,
      sandboxPort: 8001,
      maxBody: 5,
    }
    expect(read({ project }).options).toEqual(withDefaults(project))
  })

  it.each<[Record<string, unknown>, string]>([
    [{ prot: 1 }, 'relay.json: prot is not a setting (did you mean port?)'],
    [{ RELAY_PORT: 1 }, 'relay.json: RELAY_PORT is not a setting (did you mean port?)'],
    [{ targets: ['3000'] }, 'relay.json: targets is not a setting (did you mean forward?)'],
    [{ channel: 1 }, 'relay.json: channel is not a setting'],
    [{ constructor: 1 }, 'relay.json: constructor is not a setting'],
    [{ port: 65536 }, 'relay.json: port must be a whole number from 0 to 65535'],
    [{ port: true }, 'relay.json: port must be a text, a number, or a list of texts'],
    [{ port: null }, 'relay.json: port must be a text, a number, or a list of texts'],
    [{ profile: 7 }, 'relay.json: profile must be a text'],
    [{ provider: ['github'] }, 'relay.json: provider must be a text'],
    [{ clientId: '' }, 'relay.json: clientId must not be empty: leave it out instead'],
    [{ provider: 'gitlab' }, 'relay.json: provider must be one of github, gitea, sandbox'],
    [{ home: '/x' }, 'relay.json: home cannot be set by a project: set it with RELAY_HOME'],
    [
      { clientSecret: 'canary' },
      'relay.json: clientSecret cannot be set by a project: set it with RELAY_CLIENT_SECRET or RELAY_CLIENT_SECRET_FILE',
    ],
    [
      { webhookSecretFile: '/etc/passwd' },
      'relay.json: webhookSecretFile cannot be set by a project: set it with RELAY_WEBHOOK_SECRET or RELAY_WEBHOOK_SECRET_FILE',
    ],
    [{ host: '0.0.0.0' }, 'relay.json: host cannot be set by a project: set it with --host or RELAY_HOST'],
    [
      { allowHost: ['evil.example'] },
      'relay.json: allowHost cannot be set by a project: set it with --allow-host or RELAY_ALLOWED_HOSTS',
    ],
    [
      { publicUrl: 'https://evil.example' },
      'relay.json: publicUrl cannot be set by a project: set it with --public-url or RELAY_PUBLIC_URL',
    ],
    [{ store: 'memory' }, 'relay.json: store cannot be set by a project: set it with --store or RELAY_STORE'],
    [{ user: 'ada' }, 'relay.json: user cannot be set by a project: set it with --user or RELAY_USER'],
    [
      { tunnel: 'https://smee.io/evil' },
      'relay.json: tunnel cannot be set by a project: set it with --tunnel or RELAY_TUNNEL',
    ],
    [{ tokenTtl: '9d' }, 'relay.json: tokenTtl cannot be set by a project: set it with RELAY_TOKEN_TTL'],
    [{ profiles: {} }, 'relay.json: profiles can only be set in your own config.json'],
    [
      { baseUrl: 'https://evil.example' },
      "relay.json: baseUrl must be on this machine in a project's file: RELAY_BASE_URL in the environment sets any other",
    ],
  ])('refuses %j', (project, message) => {
    expect(wrong({ project })).toBe(message)
  })

  it('is searched up to the root of the checkout, the nearest first', () => {
    const root = emptyFolder()
    const cwd = path.join(root, 'a', 'b')
    mkdirSync(cwd, { recursive: true })
    mkdirSync(path.join(root, '.git'))
    writeFileSync(path.join(root, 'relay.json'), '{"port":1}')
    const port = () => readOptions(testContext({ cwd }).context, {}, silentLog).options.port
    expect(port()).toBe(1)
    writeFileSync(path.join(root, 'a', 'relay.json'), '{"port":2}')
    expect(port()).toBe(2)
    mkdirSync(path.join(cwd, '.git'))
    expect(port()).toBe(8787)
  })

  it('of a folder above counts only inside a checkout', () => {
    const root = emptyFolder()
    const cwd = path.join(root, 'a')
    mkdirSync(cwd)
    writeFileSync(path.join(root, 'relay.json'), '{"port":1}')
    expect(readOptions(testContext({ cwd }).context, {}, silentLog).options).toEqual(withDefaults({}))
  })
})

describe('config.json', () => {
  it('sets everything, for all profiles and for one', () => {
    const user = {
      host: '::1',
      allowHost: ['a', 'b'],
      profiles: { work: { user: 'ada', host: '127.0.0.2' } },
    }
    expect(read({ user }).options).toEqual(withDefaults({ host: '::1', allowHost: ['a', 'b'] }))
    expect(read({ user, flags: { profile: 'work' } }).options).toEqual(
      withDefaults({
        profile: 'work',
        user: 'ada',
        host: '127.0.0.2',
        allowHost: ['a', 'b'],
      }),
    )
  })

  it('names the profile itself, unless a project or the environment does', () => {
    const user = { profile: 'work', profiles: { work: { port: 1 }, shop: { port: 2 } } }
    expect(read({ user }).options).toEqual(withDefaults({ profile: 'work', port: 1 }))
    expect(read({ user, project: { profile: 'shop' } }).options).toEqual(
      withDefaults({ profile: 'shop', port: 2 }),
    )
  })

  it('holds secrets as the files they lie in', () => {
    const { context, user } = setUp({ user: { clientSecretFile: 'client-secret' } })
    writeFileSync(path.join(context.configFolder, 'client-secret'), 's3cret\n')
    expect(readOptions(context, {}, silentLog)).toEqual({
      options: withDefaults({ clientSecret: 's3cret' }),
      origins: { clientSecret: { kind: 'user', text: `clientSecretFile in ${user}` } },
    })
  })

  it('resolves folders relative to itself and to the home folder', () => {
    const { context } = setUp({ user: { home: 'data' } })
    expect(readOptions(context, {}, silentLog).options.home).toBe(path.join(context.configFolder, 'data'))
    expect(read({ user: { home: '~/data' } }).options.home).toBe(path.join(homedir(), 'data'))
  })

  it.each<[unknown, string]>([
    [
      { clientSecret: 'canary' },
      'config.json: clientSecret is a secret: name a file that holds it as clientSecretFile',
    ],
    [{ clientSecretFile: '/nowhere/x' }, 'clientSecretFile in config.json: /nowhere/x cannot be read'],
    [
      { clientSecretFil: 'x' },
      'config.json: clientSecretFil is not a setting (did you mean clientSecretFile?)',
    ],
    [{ secretFile: 'x' }, 'config.json: secretFile is not a setting'],
    [{ secret: 'x' }, 'config.json: secret is not a setting (did you mean webhookSecretFile?)'],
    [{ tunnelFile: 'x' }, 'config.json: tunnelFile is not a setting'],
    [{ profiles: [] }, 'config.json: profiles must be an object of profiles'],
    [{ profiles: { a: 1 } }, 'config.json: profiles.a must be an object of settings'],
    [{ profiles: { a: { prot: 1 } } }, 'config.json: profiles.a.prot is not a setting (did you mean port?)'],
    [{ profiles: { a: { profile: 'b' } } }, 'config.json: profiles.a.profile cannot be set for one profile'],
  ])('refuses %j', (user, message) => {
    expect(wrong({ user })).toBe(message)
  })
})

describe('a client secret', () => {
  const run = (given: Given, sandbox = false) =>
    prepare(setUp(given).context, { ...given.flags, color: 'auto', sandbox })
  const project = { providerUrl: 'https://git.example' }
  const dotenv = 'RELAY_PROVIDER_URL=https://git.example'
  const env = { RELAY_CLIENT_SECRET: 'canary' }

  it('is not sent to an address that only the folder names, wherever it is from', () => {
    const { context, project: file } = setUp({ project, env })
    expect(failure(() => prepare(context, { color: 'auto' }))).toEqual({
      kind: 'settings',
      message: `RELAY_CLIENT_SECRET is not sent to an address that only this folder names (providerUrl in ${file}). Set the address yourself: with --provider-url, with RELAY_PROVIDER_URL in the environment, or as providerUrl in your config.json`,
    })
    const inFolder = 'RELAY_CLIENT_SECRET=canary'
    for (const given of [
      { dotenv, env },
      { project, dotenv: inFolder },
      { dotenv: `${dotenv}\n${inFolder}` },
      { project, user: { providerUrl: 'https://other.example' }, env },
    ])
      expect(failure(() => run(given))).toMatchObject({
        kind: 'settings',
        message: expect.stringMatching(
          /^RELAY_CLIENT_SECRET( in \.env)? is not sent to an address that only/,
        ),
      })
  })

  it('is used where the user says', () => {
    const url = 'https://git.example'
    const inFolder = 'RELAY_CLIENT_SECRET=canary'
    for (const given of [
      { project, env, flags: { providerUrl: url } },
      { project, env: { ...env, RELAY_PROVIDER_URL: url } },
      { project, dotenv: inFolder, env: { RELAY_PROVIDER_URL: url } },
      { project, dotenv: inFolder, user: { providerUrl: url } },
      { project, dotenv: inFolder, user: { profiles: { default: { providerUrl: `${url}/` } } } },
      { env },
      { dotenv: inFolder },
    ])
      expect(run(given).options.clientSecret).toBe('canary')
    expect(run({ project, env }, true).options.clientSecret).toBe('canary')
  })
})

describe('--sandbox', () => {
  it('names its profile unless a flag or the environment does: files must not', () => {
    const named = { user: { profile: 'work' }, project: { profile: 'shop' } }
    expect(read({ ...named, flags: { sandbox: true } }).options.profile).toBe('sandbox')
    expect(read({ flags: { sandbox: true, profile: 'a' } }).options.profile).toBe('a')
    expect(read({ env: { RELAY_PROFILE: 'b' }, flags: { sandbox: true } }).options.profile).toBe('b')
  })
})
