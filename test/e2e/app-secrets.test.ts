import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, it } from 'vitest'
import { startSandbox, type TestSandbox } from '../../src/testing/index.js'
import { CLIENT, codeHost } from '../helpers/code-host.js'
import { emptyFolder } from '../helpers/context.js'
import { describeWith } from '../helpers/needs.js'
import { type Ended, Program } from '../helpers/program.js'
import { closedPort } from '../helpers/scripted-server.js'
import { addressOf, setUpApp } from '../helpers/setup.js'
import { signInAt } from '../helpers/sign-in.js'
import { type Tapped, tapRequests } from '../helpers/tap.js'

/** All that can be said is said, so that what must not be said would show. */
const LOUD = { RELAY_DEBUG: '1' }
/** Where each secret may lie in the database: keys of `kv`, up to the colon or the whole. */
const HOMES: Readonly<Record<string, readonly string[]>> = {
  'client secret': ['setup:secret'],
  'App key': ['setup:app'],
  'access token': ['token:ada'],
}

/** The secrets that a code host was sent, by what they are. */
function sentSecrets(requests: readonly Tapped[]): Map<string, string> {
  const secrets = new Map<string, string>()
  for (const { authorization, body } of requests) {
    const [scheme = '', value = ''] = authorization.split(' ')
    if (/^bearer$/i.test(scheme)) secrets.set(value, value.includes('.') ? 'JWT' : 'access token')
    if (/^basic$/i.test(scheme))
      secrets.set(Buffer.from(value, 'base64').toString().split(':')[1] ?? '', 'client secret')
    const fields = new URLSearchParams(body.startsWith('{') ? '' : body)
    for (const [name, kind] of FIELDS) secrets.set(fields.get(name) ?? '', kind)
    if (body.startsWith('{')) {
      const { secret, config }: { secret?: string; config?: { secret?: string } } = JSON.parse(body)
      secrets.set(secret ?? config?.secret ?? '', 'webhook secret')
    }
  }
  secrets.delete('')
  return secrets
}

const FIELDS = [
  ['client_secret', 'client secret'],
  ['code_verifier', 'PKCE verifier'],
  ['device_code', 'device code'],
] as const

/** How often processes are listed, in milliseconds. */
const SAMPLE_MS = 50

/** The command lines of all processes that there are from now on; `look` lists them at once. */
interface Processes extends Disposable {
  readonly seen: ReadonlySet<string>
  look(): void
}

function watchProcesses(): Processes {
  const seen = new Set<string>()
  const look = (): void => {
    for (const pid of readdirSync('/proc'))
      if (/^\d+$/.test(pid)) seen.add(readOr(`/proc/${pid}/cmdline`).replaceAll('\0', ' '))
  }
  const timer = setInterval(look, SAMPLE_MS)
  return { seen, look, [Symbol.dispose]: () => clearInterval(timer) }
}

function readOr(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    // The process has ended.
    return ''
  }
}

/** What a profile has on disk: its records, the rest of its database, and its other files but the one that is a secret. */
function onDisk(folder: string): { records: [string, string][]; rest: string } {
  using database = new DatabaseSync(path.join(folder, 'relay.db'))
  const rows = (sql: string): Record<string, unknown>[] => database.prepare(sql).all()
  const text = (value: unknown): string =>
    value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value)
  const tables = rows("SELECT name FROM sqlite_master WHERE type = 'table'").map(({ name }) => String(name))
  const others = tables.filter((name) => name !== 'kv')
  expect(others).toEqual(expect.arrayContaining(['delivery', 'body', 'attempt']))
  const records = rows('SELECT key, value FROM kv').map(({ key, value }): [string, string] => [
    String(key),
    String(value),
  ])
  const files = readdirSync(folder).filter((name) => !/^relay\.db|^webhook-secret$/.test(name))
  const rest = [
    ...others.flatMap((name) =>
      rows(`SELECT * FROM "${name}"`).flatMap((row) => Object.values(row).map(text)),
    ),
    ...files.map((name) => readFileSync(path.join(folder, name), 'latin1')),
  ]
  return { records, rest: rest.join('\n') }
}

/** Runs commands of one profile, and keeps what they said. */
class Watched {
  readonly said: string[] = []
  readonly env: Readonly<Record<string, string>>
  readonly #processes: Processes

  constructor(processes: Processes, env: Readonly<Record<string, string>>) {
    this.#processes = processes
    this.env = { ...env, ...LOUD }
  }

  start(...args: string[]): Program {
    const program = new Program([...args, '--verbose'], this.env)
    this.#processes.look()
    return program
  }

  heard({ out, err }: Ended): void {
    this.said.push(out, err)
  }

  async run(...args: string[]): Promise<void> {
    await using program = this.start(...args)
    this.heard(await program.ended)
  }
}

/** Commands that have a reason to name what they work with. */
const COMMANDS = [
  ['config'],
  ['config', '--json'],
  ['doctor'],
  ['whoami', '--json'],
  ['hook', 'add', 'octo/demo'],
  ['hook', 'list', 'octo/demo', '--json'],
  ['comment', 'octo/demo#1', 'hello'],
  ['catch-up', '--json'],
  ['catch-up', '--dry-run'],
  ['log', '--json'],
  ['show', 'last'],
  ['show', 'last', '--json'],
  ['export', 'last'],
  ['log', '--refused'],
] as const

describeWith('Linux', 'no secret of an App, a device or a hook', () => {
  it('is in an output, a process list, an address, the journal or a file where it does not belong', async () => {
    await using sandbox = await startSandbox({ client: CLIENT })
    using processes = watchProcesses()
    using tap = tapRequests(Number(new URL(sandbox.url).port))
    const home = emptyFolder()
    const common = { RELAY_USER: 'ada', RELAY_PROVIDER: 'sandbox', RELAY_PROVIDER_URL: sandbox.url }
    const port = String(await closedPort())
    const app = new Watched(processes, { ...common, RELAY_HOME: home, RELAY_PORT: port })
    await useApp(app, sandbox)
    const deviceHome = emptyFolder()
    const device = new Watched(processes, { ...common, ...codeHost(sandbox), RELAY_HOME: deviceHome })
    await useDevice(device)
    const tokenHome = emptyFolder()
    const token = new Watched(processes, { ...common, RELAY_HOME: tokenHome })
    await useToken(token, sandbox)

    const secrets = sentSecrets(tap.requests)
    const folders = [home, deviceHome, tokenHome].map((one) => path.join(one, 'default'))
    const disks = folders.map(onDisk)
    for (const [key, value] of disks.flatMap(({ records }) => records)) {
      if (key === 'setup:app') secrets.set(JSON.parse(value).privateKey.split('\n')[1], 'App key')
    }
    for (const folder of folders)
      secrets.set(readFileSync(path.join(folder, 'webhook-secret'), 'utf8').trim(), 'webhook secret')
    expect(new Set(secrets.values())).toEqual(
      new Set([...Object.keys(HOMES), 'JWT', 'PKCE verifier', 'device code', 'webhook secret']),
    )
    expect([...secrets.keys()].filter((secret) => secret.length < 16)).toEqual([])

    const places = {
      output: [...app.said, ...device.said, ...token.said].join('\n'),
      'process list': [...processes.seen].join('\n'),
      addresses: tap.requests.map(({ url }) => url).join('\n'),
      'journal and files': disks.map(({ rest }) => rest).join('\n'),
    }
    const found = Object.entries(places).flatMap(([place, text]) =>
      [...secrets].flatMap(([secret, kind]) => (text.includes(secret) ? [`${kind} in ${place}`] : [])),
    )
    expect(found).toEqual([])
    const homes = disks
      .flatMap(({ records }) => records)
      .flatMap(([key, value]) =>
        [...secrets].flatMap(([secret, kind]) =>
          value.includes(secret) && !HOMES[kind]?.includes(key) ? [`${kind} under ${key}`] : [],
        ),
      )
    expect(homes).toEqual([])
    // What was searched is what there was.
    expect(places.output).toMatch(/caught up with|"type":"caught-up"/)
    for (const [command] of COMMANDS) expect(places['process list']).toMatch(`relay.js ${command} `)
    expect(places['process list']).toMatch(
      /relay\.js setup .*relay\.js login --device.*relay\.js login --with-token/s,
    )
    expect(places['journal and files']).toContain('"body":"hello"')
  }, 120_000)

  /** From nothing to commands with an App: registered in the browser, signed in there, its webhook and its log used. */
  async function useApp(watched: Watched, sandbox: TestSandbox): Promise<void> {
    const { ended } = await setUpApp(sandbox, watched.env, ['--verbose'])
    watched.heard(ended)
    await using program = watched.start('serve', '--json', '--catch-up')
    await program.object({ type: 'hook', state: 'caught up' })
    {
      await using login = watched.start('login', '--no-browser')
      await signInAt(await addressOf(login))
      watched.heard(await login.ended)
    }
    for (const operation of ['hook', 'deliveries'] as const) sandbox.faults.next(operation, '502')
    for (const command of COMMANDS) await watched.run(...command)
    await sandbox.idle()
    await program.object({ type: 'delivery', event: 'issue_comment' })
    watched.heard(await program.stop())
  }

  /** The same with a token that the user made, and no client. */
  async function useToken(watched: Watched, sandbox: TestSandbox): Promise<void> {
    {
      await using login = watched.start('login', '--with-token')
      login.child.stdin?.end(await sandbox.token('repo'))
      watched.heard(await login.ended)
    }
    await using program = watched.start('serve', '--port', '0', '--json', '--hook', 'octo/demo')
    await program.object({ type: 'hook', state: 'ready' })
    for (const command of COMMANDS) await watched.run(...command)
    watched.heard(await program.stop())
  }

  /** The same with the device flow, and a hook of the repository. */
  async function useDevice(watched: Watched): Promise<void> {
    {
      await using login = watched.start('login', '--device')
      await login.says('Waiting up to')
      const [, address = '', code = ''] = /\n {2}(http\S+)\n {2}(\S+)\n/.exec(login.err) ?? []
      await enter(address, code)
      watched.heard(await login.ended)
    }
    await using program = watched.start('serve', '--port', '0', '--json', '--hook', 'octo/demo', '--catch-up')
    await program.object({ type: 'hook', state: 'caught up' })
    for (const command of COMMANDS) await watched.run(...command)
    await program.object({ type: 'delivery', event: 'issue_comment' })
    watched.heard(await program.stop())
  }
})

/** Enters a device's code, and agrees. */
async function enter(address: string, code: string): Promise<void> {
  const post = (url: string, fields: Record<string, string>): Promise<Response> =>
    fetch(url, { method: 'POST', body: new URLSearchParams(fields) })
  const page = await (await post(address, { user_code: code })).text()
  const [, token = ''] = /name="authenticity_token" value="([^"]+)"/.exec(page) ?? []
  await post(`${address}/confirmation`, { authenticity_token: token, authorize: '1' })
}
