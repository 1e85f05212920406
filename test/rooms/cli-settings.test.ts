import { mkdirSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Flags } from '../../src/cli/command.js'
import type { Context } from '../../src/cli/context.js'
import { checkSecretsPlace, type Loaded, openSettings, withDefaults } from '../../src/cli/settings/read.js'
import type { GivenValues } from '../../src/cli/settings/parse.js'
import { SETTING_NAMES, settingOf } from '../../src/cli/settings/table.js'
import { emptyFolder } from '../kit/folder.js'
import { failure, testShell } from './cli-shell.js'

type Place = Partial<Pick<Context, 'env' | 'cwd' | 'configFolder'>>

/** The settings that a command has there, and the warnings about them. */
function load(place: Place, flags: Flags = {}): Loaded & { readonly warnings: readonly string[] } {
  const { shell, err } = testShell(place)
  const loaded = openSettings(shell, flags).read()
  const warnings = err()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/^warning: /, ''))
  return { ...loaded, warnings }
}

const read = (env: Record<string, string>, flags: Flags = {}, cwd = emptyFolder()) =>
  load({ env, cwd }, flags).values

describe('flags and variables', () => {
  it('prefers a flag to the environment, and the environment to .env', () => {
    const cwd = emptyFolder()
    writeFileSync(path.join(cwd, '.env'), 'RELAY_PORT=1\nRELAY_MAX_BODY=5\nRELAY_CLIENT_ID="id"\n')
    expect(read({ RELAY_PORT: '2', RELAY_MAX_BODY: '6' }, { port: '3' }, cwd)).toEqual(
      withDefaults({
        port: 3,
        maxBody: 6,
        clientId: 'id',
      }),
    )
  })

  it('treats an empty value as not set', () => {
    expect(read({ RELAY_PORT: '', RELAY_CLIENT_ID: '' })).toEqual(withDefaults({}))
  })

  it.each<[Record<string, string>, Flags, string]>([
    [{ RELAY_PORT: '65536' }, {}, 'RELAY_PORT: must be a whole number from 0 to 65535'],
    [{}, { port: '8o' }, '--port: must be a whole number from 0 to 65535'],
    [{ RELAY_PROVIDER: 'gitlab' }, {}, 'RELAY_PROVIDER: must be one of github, gitea, sandbox'],
    [{ RELAY_MAX_BODY: '26214401' }, {}, 'RELAY_MAX_BODY: must be a whole number from 1 to 26214400'],
    [{ RELAY_TOKEN_TTL: '30' }, {}, 'RELAY_TOKEN_TTL: must be a duration such as 12h or 30d'],
    [{ RELAY_BASE_URL: '/' }, {}, 'RELAY_BASE_URL: must be an absolute http:// or https:// address'],
    [{ RELAY_PUBLIC_URL: 'https://a:b@c' }, {}, 'RELAY_PUBLIC_URL: must not contain a user name or password'],
    [{ RELAY_PUBLIC_URL: 'https://a/?b=1' }, {}, 'RELAY_PUBLIC_URL: must not contain a query or a fragment'],
    [
      { RELAY_PROVIDER_URL: 'https://a/#b' },
      {},
      'RELAY_PROVIDER_URL: must not contain a query or a fragment',
    ],
    [{ RELAY_WEBHOOK_SECRET_FILE: '/dev/null' }, {}, 'RELAY_WEBHOOK_SECRET_FILE: /dev/null is empty'],
    [{}, { publicUrl: 'javascript:1' }, '--public-url: must be an absolute http:// or https:// address'],
    [
      { RELAY_PROFILE: '../x' },
      {},
      'RELAY_PROFILE: must be 1–64 letters, digits, ".", "_" or "-", not starting with "."',
    ],
    [{ RELAY_ALLOWED_HOSTS: 'a,,b' }, {}, 'RELAY_ALLOWED_HOSTS: must be host names, separated by commas'],
  ])('refuses %j %j', (env, flags, message) => {
    expect(failure(() => read(env, flags))).toEqual({ kind: 'settings', message })
  })

  it('reads a secret from the file that <NAME>_FILE names, less one line end', () => {
    const file = path.join(emptyFolder(), 'secret')
    writeFileSync(file, 's3cret \n\n')
    expect(read({ RELAY_WEBHOOK_SECRET_FILE: file })).toEqual(withDefaults({ webhookSecret: 's3cret \n' }))
  })

  it('names the file of a secret that cannot be read', () => {
    expect(failure(() => read({ RELAY_CLIENT_SECRET_FILE: '/nowhere/secret' }))).toEqual({
      kind: 'settings',
      message: 'RELAY_CLIENT_SECRET_FILE: /nowhere/secret cannot be read',
    })
  })

  it('uses BASE_URL when RELAY_BASE_URL is not set', () => {
    expect(read({ BASE_URL: 'https://app.example/x/' })).toEqual(
      withDefaults({ baseUrl: 'https://app.example/x/' }),
    )
    expect(read({ BASE_URL: 'https://app.example', RELAY_BASE_URL: 'https://b.example' })).toEqual(
      withDefaults({
        baseUrl: 'https://b.example',
      }),
    )
  })

  it('ignores a BASE_URL that is not a web address, with a warning', () => {
    const { values, warnings } = load({ env: { BASE_URL: '/' } })
    expect(values).toEqual(withDefaults({}))
    expect(warnings).toEqual([
      'BASE_URL is ignored: it is no absolute http:// or https:// address (RELAY_BASE_URL sets it for relay alone)',
    ])
  })
})

/** A folder with this `.env`. */
function dotenv(...lines: string[]): Required<Pick<Place, 'cwd' | 'configFolder'>> {
  const cwd = emptyFolder()
  writeFileSync(path.join(cwd, '.env'), lines.join('\n'))
  return { cwd, configFolder: emptyFolder() }
}

/** What is wrong, with the places of files taken out. */
function wrongDotenv(...lines: string[]): string {
  const context = dotenv(...lines)
  const { kind, message } = failure(() => load(context))
  expect(kind).toBe('settings')
  return String(message).replace(context.cwd, '…').replace(context.configFolder, '…')
}

describe('.env', () => {
  it('sets what relay.json may, and secrets', () => {
    const secret = path.join(emptyFolder(), 'secret')
    writeFileSync(secret, 'p\n')
    const { values, warnings } = load(
      dotenv(
        'RELAY_PROFILE=shop',
        'RELAY_PROVIDER=gitea',
        'RELAY_PROVIDER_URL=https://git.example',
        'RELAY_CLIENT_ID=c',
        'RELAY_CLIENT_SECRET=s',
        'RELAY_WEBHOOK_SECRET=w',
        `RELAY_WEBHOOK_SECRET_PREVIOUS_FILE=${secret}`,
        'RELAY_BASE_URL=http://localhost:3000',
        'RELAY_PORT=8000',
        'RELAY_FORWARD=http://localhost:3000',
        'RELAY_EXEC=./deploy.sh',
      ),
    )
    expect(values).toEqual(
      withDefaults({
        profile: 'shop',
        provider: 'gitea',
        providerUrl: 'https://git.example',
        clientId: 'c',
        clientSecret: 's',
        webhookSecret: 'w',
        webhookSecretPrevious: 'p',
        baseUrl: 'http://localhost:3000',
        port: 8000,
        forward: ['http://localhost:3000'],
        exec: ['./deploy.sh'],
      }),
    )
    expect(warnings).toEqual([])
  })

  it('ignores variables of other programs, and empty ones', () => {
    const { values, origins, warnings } = load(
      dotenv('PATH=/evil', 'DATABASE_URL=x', 'RELAYS=1', 'RELAY_TUNNEL='),
    )
    expect({ values, origins }).toEqual({ values: withDefaults({}), origins: {} })
    expect(warnings).toEqual([])
  })

  it('that is a folder is Python’s', () => {
    const cwd = emptyFolder()
    mkdirSync(path.join(cwd, '.env'))
    expect(load({ cwd }).values).toEqual(withDefaults({}))
  })

  const config = '…/config.json'
  it.each([
    ['RELAY_HOME', `set it in the environment, or as home in ${config}`],
    ['RELAY_TUNNEL', `set it in the environment, or with --tunnel, or as tunnel in ${config}`],
    ['RELAY_HOST', `set it in the environment, or with --host, or as host in ${config}`],
    ['RELAY_TOKEN_TTL', `set it in the environment, or as tokenTtl in ${config}`],
    ['RELAY_DEBUG', 'set it in the environment'],
  ])('refuses %s, and names where to set it', (name, where) => {
    expect(wrongDotenv('A=1', `${name}=x`)).toBe(`…/.env: ${name} cannot be set by a project: ${where}`)
  })

  it('refuses every setting that relay.json may not make', () => {
    const refused = SETTING_NAMES.map(settingOf)
      .filter(({ project, secret }) => !project && !secret)
      .map(({ env }) => env)
    expect(refused).toEqual([
      'RELAY_HOME',
      'RELAY_USER',
      'RELAY_HOST',
      'RELAY_ALLOWED_HOSTS',
      'RELAY_INSPECT_HOSTS',
      'RELAY_METRICS',
      'RELAY_LOG_FORMAT',
      'RELAY_PUBLIC_URL',
      'RELAY_STORE',
      'RELAY_TOKEN_TTL',
      'RELAY_KEEP',
      'RELAY_KEEP_MAX',
      'RELAY_TUNNEL',
    ])
    for (const name of refused) expect(wrongDotenv(`${name}=x`)).toContain('cannot be set by a project')
  })

  it.each([
    ['RELAY_PROT=1', '…/.env: RELAY_PROT is not a setting (did you mean RELAY_PORT?)'],
    ['RELAY_SECRET=x', '…/.env: RELAY_SECRET is not a setting (did you mean RELAY_WEBHOOK_SECRET?)'],
    ['RELAY_CHANNEL=x', '…/.env: RELAY_CHANNEL is not a setting'],
    ['RELAY_FORWARD_FILE=x', '…/.env: RELAY_FORWARD_FILE is not a setting'],
    [
      'RELAY_FORWARD=push=https://evil.example',
      "RELAY_FORWARD in .env: must be on this machine in a project's file: RELAY_FORWARD in the environment sets any other",
    ],
    [
      'RELAY_BASE_URL=https://evil.example',
      "RELAY_BASE_URL in .env: must be on this machine in a project's file: RELAY_BASE_URL in the environment sets any other",
    ],
    ['RELAY_PORT=x', 'RELAY_PORT in .env: must be a whole number from 0 to 65535'],
  ])('refuses %s', (line, message) => {
    expect(wrongDotenv(line)).toBe(message)
  })

  it('may hold an application’s BASE_URL, which counts on this machine only', () => {
    expect(load(dotenv('BASE_URL=http://localhost:1')).values).toEqual(
      withDefaults({ baseUrl: 'http://localhost:1' }),
    )
    const { values, warnings } = load(dotenv('BASE_URL=https://app.example'))
    expect(values).toEqual(withDefaults({}))
    expect(warnings).toEqual([
      'BASE_URL in .env is ignored: it is no absolute http:// or https:// address on this machine (RELAY_BASE_URL in the environment sets it for relay alone)',
    ])
  })
})

interface Given {
  readonly project?: unknown
  readonly user?: unknown
  readonly dotenv?: string
  readonly env?: Record<string, string>
  readonly flags?: Flags
}

function setUp({ project, user, dotenv, env = {} }: Given) {
  const context = { env, cwd: emptyFolder(), configFolder: emptyFolder() }
  const files = {
    project: path.join(context.cwd, 'relay.json'),
    user: path.join(context.configFolder, 'config.json'),
  }
  if (project !== undefined) writeFileSync(files.project, JSON.stringify(project))
  if (user !== undefined) writeFileSync(files.user, JSON.stringify(user))
  if (dotenv !== undefined) writeFileSync(path.join(context.cwd, '.env'), dotenv)
  return { context, ...files }
}

function readGiven(given: Given): Loaded {
  const { values, origins } = load(setUp(given).context, given.flags)
  return { values, origins }
}

/** What is wrong, with the place of the file taken out. */
function wrong(given: Given): string {
  const { context, project, user } = setUp(given)
  const { kind, message } = failure(() => load(context, given.flags))
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
    const { values, origins } = readGiven(left)
    expect({ port: values.port, kind: origins.port?.kind }).toEqual({ port: skipped + 1, kind })
  })

  it('reports where each value came from', () => {
    const given = { ...places, flags: {}, env: { RELAY_HOST: '::1' }, user: { store: 'memory' } }
    const { context, user } = setUp(given)
    expect(load(context)).toMatchObject({
      values: withDefaults({ host: '::1', port: 3, store: 'memory' }),
      origins: {
        host: { kind: 'environment', text: 'RELAY_HOST' },
        port: { kind: 'dotenv', text: 'RELAY_PORT in .env' },
        store: { kind: 'user', text: `store in ${user}` },
      },
    })
  })

  it('prefers BASE_URL to a file, and RELAY_BASE_URL to BASE_URL', () => {
    const project = { baseUrl: 'http://localhost:1' }
    expect(readGiven({ project, env: { BASE_URL: 'https://a.example' } }).values.baseUrl).toBe(
      'https://a.example',
    )
    expect(readGiven({ project, env: { BASE_URL: '/' } }).values.baseUrl).toBe('http://localhost:1')
    const both = { dotenv: 'RELAY_BASE_URL=http://localhost:2', env: { BASE_URL: 'https://a.example' } }
    expect(readGiven(both).values.baseUrl).toBe('http://localhost:2')
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
    expect(readGiven({ project }).values).toEqual(withDefaults(project))
  })

  it.each<[Record<string, unknown>, string]>([
    [{ prot: 1 }, 'relay.json: prot is not a setting (did you mean port?)'],
    [{ RELAY_PORT: 1 }, 'relay.json: RELAY_PORT is not a setting (did you mean port?)'],
    [{ targets: ['3000'] }, 'relay.json: targets is not a setting (did you mean forward?)'],
    [{ channel: 1 }, 'relay.json: channel is not a setting'],
    [{ constructor: 1 }, 'relay.json: constructor is not a setting'],
    [{ port: 65536 }, 'port in relay.json: must be a whole number from 0 to 65535'],
    [
      { port: true },
      'port in relay.json: must be a text, a number, or a list of texts, and not be empty: leave it out instead',
    ],
    [
      { port: null },
      'port in relay.json: must be a text, a number, or a list of texts, and not be empty: leave it out instead',
    ],
    [
      { clientId: '' },
      'clientId in relay.json: must be a text, a number, or a list of texts, and not be empty: leave it out instead',
    ],
    [{ provider: 'gitlab' }, 'provider in relay.json: must be one of github, gitea, sandbox'],
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
      "baseUrl in relay.json: must be on this machine in a project's file: RELAY_BASE_URL in the environment sets any other",
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
    const port = () => load({ cwd }).values.port
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
    expect(load({ cwd }).values).toEqual(withDefaults({}))
  })
})

describe('config.json', () => {
  it('sets everything, for all profiles and for one', () => {
    const user = {
      host: '::1',
      allowHost: ['a', 'b'],
      profiles: { work: { user: 'ada', host: '127.0.0.2' } },
    }
    expect(readGiven({ user }).values).toEqual(withDefaults({ host: '::1', allowHost: ['a', 'b'] }))
    expect(readGiven({ user, flags: { profile: 'work' } }).values).toEqual(
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
    expect(readGiven({ user }).values).toEqual(withDefaults({ profile: 'work', port: 1 }))
    expect(readGiven({ user, project: { profile: 'shop' } }).values).toEqual(
      withDefaults({ profile: 'shop', port: 2 }),
    )
  })

  it('holds secrets as the files they lie in', () => {
    const { context, user } = setUp({ user: { clientSecretFile: 'client-secret' } })
    writeFileSync(path.join(context.configFolder, 'client-secret'), 's3cret\n')
    expect(load(context)).toMatchObject({
      values: withDefaults({ clientSecret: 's3cret' }),
      origins: { clientSecret: { kind: 'user', text: `clientSecretFile in ${user}` } },
    })
  })

  it('resolves folders relative to itself and to the home folder', () => {
    const { context } = setUp({ user: { home: 'data' } })
    expect(load(context).values.home).toBe(path.join(context.configFolder, 'data'))
    expect(readGiven({ user: { home: '~/data' } }).values.home).toBe(path.join(homedir(), 'data'))
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

function checked(place: Place, flags: Flags = {}): Loaded {
  const loaded = load(place, flags)
  if (!flags.sandbox) checkSecretsPlace(loaded.origins)
  return loaded
}

describe('a client secret', () => {
  const run = (given: Given, sandbox = false) => checked(setUp(given).context, { ...given.flags, sandbox })
  const project = { providerUrl: 'https://git.example' }
  const dotenv = 'RELAY_PROVIDER_URL=https://git.example'
  const env = { RELAY_CLIENT_SECRET: 'canary' }

  it('is not sent to an address that only the folder names, wherever it is from', () => {
    const { context, project: file } = setUp({ project, env })
    expect(failure(() => checked(context))).toEqual({
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
      expect(run(given).values.clientSecret).toBe('canary')
    expect(run({ project, env }, true).values.clientSecret).toBe('canary')
  })
})

describe('--sandbox', () => {
  it('names its profile unless a flag or the environment does: files must not', () => {
    const named = { user: { profile: 'work' }, project: { profile: 'shop' } }
    expect(readGiven({ ...named, flags: { sandbox: true } }).values.profile).toBe('sandbox')
    expect(readGiven({ flags: { sandbox: true, profile: 'a' } }).values.profile).toBe('a')
    expect(readGiven({ env: { RELAY_PROFILE: 'b' }, flags: { sandbox: true } }).values.profile).toBe('b')
  })
})
