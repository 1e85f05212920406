import { randomUUID } from 'node:crypto'
import { Client as BaseClient, Pool, type PoolConfig } from 'pg'
import type { SharedStore } from '../../base/shared-store.js'
import { LIMIT_MS, type Sql } from '../sql.js'
import { CONTROL_LIMIT_MS, ControlConnection } from './control.js'
import { createPostgres } from './engine.js'
import { postgresError } from './error.js'
import { CONNECTIONS } from './health.js'
import { applicationName, createLeases } from './leases.js'
import { passwordOf } from './password.js'
import { prepareSchema, schemaName, searchPath } from './schema.js'
import { tlsOf } from './tls.js'

/** Connections that read at the same time: what one relay needs, and few enough that 20 of them fit in a server's default of 100. */
const READERS = CONNECTIONS - 2
/** Milliseconds. The server ends what takes longer, before the caller's limit, so that the reason is known. */
const STATEMENT_LIMIT = LIMIT_MS - 500
const LOCK_LIMIT = LIMIT_MS - 1000
const CONNECT_LIMIT = LIMIT_MS - 500
/** A connection that died without a word is found after this, while it is idle. */
const KEEP_ALIVE = 10_000

export interface PostgresOptions {
  readonly store: SharedStore
  readonly profile: string
  /** Make the profile's schema where it is missing. Default: true. */
  readonly create?: boolean | undefined
}

/**
 * Opens a profile's data in a PostgreSQL database.
 * @throws RelayError `storage` that names the database, why it cannot be used, and what to do; `settings` when the file with the
 * certificates cannot be read.
 */
export async function openPostgres({ store, profile, create = true }: PostgresOptions): Promise<Sql> {
  const schema = schemaName(profile)
  const [name, holder] = [nameOf(store), randomUUID()]
  const config = {
    ...poolConfig(store, schema),
    ssl: await tlsOf(store, CONNECT_LIMIT, name),
    application_name: applicationName(holder),
  }
  const [writer, readers] = [new Pool({ ...config, max: 1 }), new Pool({ ...config, max: READERS })]
  for (const pool of [writer, readers]) {
    // A connection that ends is replaced when one is needed; what was under way on it is rejected there.
    pool.on('error', () => {})
    pool.on('connect', (client) => client.on('error', () => {}))
  }
  try {
    const client = await writer.connect()
    try {
      await prepareSchema(client, schema, create)
    } finally {
      client.release()
    }
  } catch (error) {
    await Promise.all([writer.end(), readers.end()])
    throw postgresError(error, name)
  }
  const sql = createPostgres({ writer, readers, name, holder })
  const limits = { statement_timeout: CONTROL_LIMIT_MS, connectionTimeoutMillis: CONTROL_LIMIT_MS }
  const connect = (): Client => new Client({ ...config, ...limits })
  const leases = createLeases(sql, new ControlConnection({ connect, channel: schema, holder, name }), holder)
  return {
    ...sql,
    leases,
    async [Symbol.asyncDispose]() {
      await leases[Symbol.asyncDispose]()
      await sql[Symbol.asyncDispose]()
    },
  }
}

/** Server, port and database: all that a person needs to know which one is meant. */
export function nameOf({ host, port, database }: SharedStore): string {
  return `${database} on ${host}${host.startsWith('/') ? '' : `:${port}`}`
}

/** A connection that is closed when it cannot be opened: the driver leaves it open when it has no password to give. */
class Client extends BaseClient {
  override connect(): Promise<BaseClient>
  override connect(callback: (error: Error) => void): void
  override connect(callback?: (error: Error) => void): Promise<BaseClient> | void {
    if (!callback) return super.connect()
    super.connect((error?: Error | null) => {
      if (error) void this.end()
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- null, or nothing, says that there is none
      callback(error as Error)
    })
  }
}

function poolConfig(store: SharedStore, schema: string): PoolConfig {
  const { host, port, user, database } = store
  return {
    Client,
    host,
    port,
    user,
    database,
    password: () => passwordOf(store),
    // Each statement must see what was committed before it, whatever the server's own default.
    options: [
      `-c search_path=${searchPath(schema)}`,
      String.raw`-c default_transaction_isolation=read\ committed`,
      '-c client_min_messages=error',
      '-c jit=off',
    ].join(' '),
    statement_timeout: STATEMENT_LIMIT,
    lock_timeout: LOCK_LIMIT,
    connectionTimeoutMillis: CONNECT_LIMIT,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE,
  }
}
