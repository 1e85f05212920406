import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { Client, type QueryResult } from 'pg'
import { Secret } from '../../src/base/secret.js'
import { SharedStore } from '../../src/base/shared-store.js'
import { emptyFolder } from './context.js'
import { closedPort } from './scripted-server.js'

/** Where Debian has each version's programs, which are not in PATH. */
const DEBIAN = '/usr/lib/postgresql'
/** Debian's user without rights: the server refuses to run as root. */
export const UNPRIVILEGED = 65_534
const USER = 'relay'
export const PASSWORD = 'a password of the tests'
export const KEY = new Secret(Buffer.alloc(32, 7).toString('base64'))

/** A PostgreSQL server of the tests' own, on a free port of 127.0.0.1. It does not outlive the test process. */
export interface PostgresServer extends AsyncDisposable {
  readonly store: SharedStore
  readonly port: number
  /** The process whose children serve the connections. */
  readonly pid: number
  /** Ends the server: by default as its administrator does, with a signal `SIGQUIT` as a crash does. */
  stop(signal?: 'SIGINT' | 'SIGQUIT'): Promise<void>
  /** Starts it again. */
  start(): Promise<void>
  /** A connection of the owner of the database. */
  connect(): Promise<Client>
  /** Runs statements on such a connection. */
  run(sql: string): Promise<QueryResult>
  /** The database as another user, who owns nothing and may do what `rights` grants: statements for `$user`. */
  storeOf(user: string, ...rights: readonly string[]): Promise<SharedStore>
  /** What `pg_dump` writes. */
  dump(): Promise<string>
}

/** The folder of the newest installed server's programs. */
export function postgresPrograms(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).map(Number).filter(Number.isInteger) : []
  const folders = versions.toSorted((one, other) => other - one).map((version) => `${DEBIAN}/${version}/bin`)
  return folders.find((folder) => existsSync(path.join(folder, 'initdb')))
}

let shared: Promise<PostgresServer> | undefined

/** One server for all test files of this process: each test has a profile of its own. */
export function sharedPostgres(): Promise<PostgresServer> {
  return (shared ??= startPostgres())
}

/** Where a server keeps its data and its log of changes, and the command by which its programs see these folders. */
export interface Place {
  readonly data: string
  readonly log: string
  readonly wrapper: readonly string[]
}

/** Starts a server; `settings` are added to its configuration. */
export async function startPostgres(
  settings: Readonly<Record<string, string>> = {},
  place?: Place,
): Promise<PostgresServer> {
  const cluster = await createCluster(place)
  const port = await closedPort()
  const options = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '', ...settings }
  const args = Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const launch = (): Promise<ChildProcess> => launchServer(cluster, args)
  let server = await launch()
  const stop = async (signal: NodeJS.Signals = 'SIGINT'): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return
    const ended = once(server, 'exit')
    server.ref()
    server.kill(signal)
    await ended
  }
  const address = `postgres://${USER}@127.0.0.1:${port}/postgres`
  return {
    store: new SharedStore(address, { password: new Secret(PASSWORD), keys: { current: KEY } }),
    port,
    get pid() {
      return server.pid ?? 0
    },
    stop,
    async start() {
      server = await launch()
    },
    connect: () => connect(port),
    run: (sql) => runSql(port, sql),
    async storeOf(user, ...rights) {
      const grants = rights.map((right) => right.replaceAll('$user', user))
      await runSql(port, [`CREATE ROLE ${user} LOGIN PASSWORD '${PASSWORD}'`, ...grants].join(';'))
      const secrets = { password: new Secret(PASSWORD), keys: { current: KEY } }
      return new SharedStore(`postgres://${user}@127.0.0.1:${port}/postgres`, secrets)
    },
    async dump() {
      const options = { env: { PGPASSWORD: PASSWORD }, maxBuffer: 2 ** 30 }
      const { stdout } = await promisify(execFile)(
        path.join(postgresPrograms() ?? '', 'pg_dump'),
        [address],
        options,
      )
      // A word of chance, which is another one each time.
      return stdout.replaceAll(/^\\(?:un)?restrict .*$/gm, '')
    },
    [Symbol.asyncDispose]: () => stop('SIGQUIT'),
  }
}

interface Cluster {
  readonly folder: string
  readonly data: string
  /** The command line of one of the server's programs. */
  readonly command: (program: string) => readonly [string, ...string[]]
  /** Whom its processes run as; a wrapper changes the user by itself. */
  readonly owner: { readonly uid?: number; readonly gid?: number }
}

async function createCluster(place?: Place): Promise<Cluster> {
  const [folder, programs = ''] = [emptyFolder(), postgresPrograms()]
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(folder, UNPRIVILEGED, UNPRIVILEGED)
  const owner = isRoot && !place ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}
  const { data, log, wrapper }: Place = place ?? {
    data: path.join(folder, 'data'),
    log: path.join(folder, 'log'),
    wrapper: [],
  }
  const command = (program: string): [string, ...string[]] => {
    const [first, ...rest] = wrapper
    const file = path.join(programs, program)
    return first === undefined ? [file] : [first, ...rest, file]
  }
  const password = path.join(folder, 'password')
  writeFileSync(password, PASSWORD)
  chmodSync(password, 0o644)
  const options = [
    '-U',
    USER,
    '-A',
    'scram-sha-256',
    '-E',
    'UTF8',
    '--locale=C.UTF-8',
    `--pwfile=${password}`,
  ]
  const [file, ...args] = command('initdb')
  const folders = ['-D', data, '-X', log]
  await promisify(execFile)(file, [...args, ...folders, '--no-sync', ...options], { ...owner, cwd: folder })
  return { folder, data, command, owner }
}

/** Resolves once the server takes connections. It ends when this process is gone, however it went. */
async function launchServer(
  { folder, data, command, owner }: Cluster,
  settings: readonly string[],
): Promise<ChildProcess> {
  const stdio = ['ignore', 'ignore', 'pipe'] as const
  const [file, ...args] = command('postgres')
  const server = spawn(file, [...args, '-D', data, ...settings], {
    ...owner,
    cwd: folder,
    stdio: [...stdio],
  })
  const keeper = spawn('sh', ['-c', 'cat; kill -QUIT "$0"', `${server.pid}`], {
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  server.once('exit', () => keeper.kill('SIGKILL'))
  const { stderr } = server
  await new Promise<void>((resolve, reject) => {
    createInterface(stderr).on('line', (line) => line.includes('ready to accept connections') && resolve())
    server.once('exit', () => reject(new Error('PostgreSQL ended while it started')))
  })
  for (const each of [server, keeper]) each.unref()
  if (stderr instanceof Socket) stderr.unref()
  if (keeper.stdin instanceof Socket) keeper.stdin.unref()
  return server
}

async function connect(port: number): Promise<Client> {
  const address = { host: '127.0.0.1', port, user: USER, database: 'postgres' }
  const client = new Client({ ...address, password: PASSWORD, ssl: false })
  await client.connect()
  return client
}

async function runSql(port: number, sql: string): Promise<QueryResult> {
  const client = await connect(port)
  try {
    return await client.query(sql)
  } finally {
    await client.end()
  }
}
