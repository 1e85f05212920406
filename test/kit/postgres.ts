import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { Client, type QueryResult } from 'pg'
import { SECRET } from './delivery.js'
import { Daemon } from './daemon.js'
import { emptyFolder, type Env } from './folder.js'
import { part } from './parts.js'
import { closedPort } from './ports.js'
import { OWNER, PASSWORD, postgresProgram, type Server, startServer, USER } from './postgres-server.js'

export { PASSWORD } from './postgres-server.js'

/** The key by which relay encrypts tokens. */
export const KEY = Buffer.alloc(32, 7).toString('base64')

/** A database for relay, and what a test needs from outside. */
export type Database = ReturnType<typeof databaseAt> & AsyncDisposable
export type DatabaseServer = Database & Server

/** A new, empty database on the run's server. */
export async function database(): Promise<Database> {
  const port = await part('postgres')
  const name = `test_${randomBytes(6).toString('hex')}`
  await runSql(port, 'postgres', `CREATE DATABASE ${name}`)
  return {
    ...databaseAt(port, name),
    async [Symbol.asyncDispose]() {
      // Not dropped, which takes a second on a busy disk: it writes all that other tests have changed. It goes with the run.
      await runSql(port, 'postgres', `ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
      const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`
      await runSql(port, 'postgres', end)
    },
  }
}

/** A server of the test's own, whose database is `postgres`, for a test that stops it; `settings` are added to its configuration. */
export async function ownServer(
  settings: Readonly<Record<string, string>> = {},
  wrapper: readonly string[] = [],
): Promise<DatabaseServer> {
  const server = await startServer(await part('cluster'), settings, wrapper)
  return Object.assign(server, databaseAt(server.port, 'postgres'))
}

/** Debian's pgbouncer in front of a database's server, with these settings. */
export async function pgbouncer(
  { port: serverPort }: Pick<Database, 'port'>,
  settings: Readonly<Record<string, string>>,
): Promise<AsyncDisposable & { readonly port: number }> {
  const folder = emptyFolder()
  chmodSync(folder, 0o755)
  const port = await closedPort()
  const users = path.join(folder, 'users')
  writeFileSync(users, `"${USER}" "${PASSWORD}"\n`)
  const options = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: users,
    ...settings,
  }
  const lines = Object.entries(options).map(([name, value]) => `${name} = ${value}`)
  const file = path.join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    ['[databases]', `* = host=127.0.0.1 port=${serverPort}`, '[pgbouncer]', ...lines, ''].join('\n'),
  )
  const daemon = new Daemon('pgbouncer', [file], OWNER)
  await daemon.says(/process up/)
  return { port, [Symbol.asyncDispose]: () => daemon.stop() }
}

function databaseAt(port: number, name: string) {
  const store = `postgres://${USER}@127.0.0.1:${port}/${name}`
  /** What `relay` needs to use it. */
  const env: Env = {
    RELAY_STORE: store,
    RELAY_TOKEN_KEY: KEY,
    RELAY_WEBHOOK_SECRET: SECRET,
    PGPASSWORD: PASSWORD,
  }
  return {
    /** Its address, without the password. */
    store,
    port,
    name,
    env,
    /** A connection of its owner. The test ends it. */
    connect: () => connect(port, name),
    /** Runs statements on such a connection. */
    run: (sql: string) => runSql(port, name, sql),
    /** What `pg_dump` writes. */
    async dump(): Promise<string> {
      const options = { env: { PGPASSWORD: PASSWORD }, maxBuffer: 2 ** 30 }
      const { stdout } = await promisify(execFile)(postgresProgram('pg_dump') ?? '', [store], options)
      // A word of chance, which is another one each time.
      return stdout.replaceAll(/^\\(?:un)?restrict .*$/gm, '')
    },
  }
}

async function connect(port: number, database: string): Promise<Client> {
  const login = { user: USER, password: PASSWORD, ssl: false }
  const client = new Client({ host: '127.0.0.1', port, database, ...login })
  await client.connect()
  return client
}

async function runSql(port: number, database: string, sql: string): Promise<QueryResult> {
  const client = await connect(port, database)
  try {
    return await client.query(sql)
  } finally {
    await client.end()
  }
}
