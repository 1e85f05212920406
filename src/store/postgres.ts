import { randomUUID } from 'node:crypto'
import { Socket } from 'node:net'
import { type ClientBase, Pool, type PoolClient, type PoolConfig } from 'pg'
import { errorCode, toRelayError } from '../base/errors.js'
import type { SharedStore } from '../base/shared-store.js'
import { awaitWithin, isTimeout } from '../base/wait.js'
import { isOfTransaction, postgresError, postgresFailure } from './postgres-error.js'
import { LOCK_WRITERS } from './postgres-locks.js'
import { migrateSchema, prepareSchema, requireVersion } from './postgres-schema.js'
import { PostgresClient, configOf, numbered, schemaName, toParameter } from './postgres-server.js'
import { type MigrationOptions, NO_MIGRATION } from './schema.js'
import {
  Commits,
  STORAGE_LIMIT_MS,
  type Sql,
  type SqlRow,
  type SqlValue,
  type Statement,
  type Tx,
  type PendingTransaction,
  type WriteOptions,
} from './sql.js'

/** Connections that read. With the one that writes and the session that holds locks, a relay has six. */
const READERS = 4
/**
 * Time after which a connection is closed without the server's confirmation, for example on a network that drops
 * packets. Milliseconds.
 */
const GOODBYE_MS = 1000

interface PostgresOptions {
  readonly store: SharedStore
  readonly profile: string
  /** Default: {@link NO_MIGRATION}. */
  readonly migration?: MigrationOptions
  /** Creates the profile's schema if it is missing. Default: true. */
  readonly create?: boolean | undefined
}

/**
 * Opens a profile's data in a PostgreSQL database.
 * @throws RelayError `storage` that names the database, why it cannot be used, and what to do; `no_match` when it has
 * no data of the profile and none may be created; `settings` for data of another version that cannot be migrated or
 * that the caller may not migrate, or when the file of certificates cannot be read; `unavailable` while relays of the
 * earlier version run
 */
export async function openPostgres(options: PostgresOptions): Promise<Postgres> {
  const postgres = new Postgres(options)
  try {
    await postgres.prepare(options)
    return postgres
  } catch (error) {
    await postgres[Symbol.asyncDispose]()
    throw postgresError(error, postgres)
  }
}

/** Most numbers in one notice, whose limit is 8,000 bytes. */
const MAX_NUMBERS = 400
/**
 * Ends connections that hold the lock, or wait for it before this relay, without sending anything: those of a relay
 * that is suspended in a transaction.
 */
const FREE_LOCK = `SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE locktype = 'advisory' AND granted AND wait_event = 'ClientRead' AND pid <> pg_backend_pid()
    AND ((classid::bigint << 32) | objid::bigint) = hashtextextended(current_schema(), 0) AND objsubid = 1
    AND query_start < clock_timestamp() - interval '2 s'`
/**
 * Estimates the size of the data: bodies, answers, and the rows and index entries of each. The size of the files is of
 * no use, since they keep the space of deleted rows.
 */
const USED = `SELECT (SELECT coalesce(sum(size + 1024), 0) FROM delivery)
  + (SELECT coalesce(sum(octet_length(answer) + 512), 0) FROM attempt) AS bytes`

/** A profile's data in a PostgreSQL database. */
export class Postgres implements Sql {
  /** Prefix of this relay's notices. */
  readonly id = randomUUID()
  readonly schema: string
  /** Database and server, for messages. */
  readonly name: string
  readonly profile: string
  readonly #config: PoolConfig
  readonly #writer: Pool
  readonly #readers: Pool
  readonly #sockets = new Set<Socket>()
  readonly #statements = new Statements()
  readonly #commits = new Commits((batch) => this.#commit(batch), isOfTransaction)

  constructor({ store, profile }: PostgresOptions) {
    const { host, port, database } = store
    this.schema = schemaName(profile)
    this.profile = profile
    this.name = `${database} on ${host}${host.startsWith('/') ? '' : `:${port}`}`
    this.#config = { ...configOf(store, this.schema), stream: () => this.#socket() }
    // A relay that is suspended between two statements of a transaction loses it after this time, so that others can
    // write.
    const limits = { idle_in_transaction_session_timeout: STORAGE_LIMIT_MS }
    // The statements of a batch are pipelined.
    this.#writer = new Pool({ ...this.#config, ...limits, max: 1, pipeline: true })
    this.#readers = new Pool({ ...this.#config, max: READERS })
    for (const pool of [this.#writer, this.#readers]) {
      // A connection that ends is replaced on demand. Its pending statements are rejected where they were sent.
      pool.on('error', () => {})
      pool.on('connect', (client) => client.on('error', () => {}))
    }
  }

  /** Creates the schema if it is missing, and migrates one of an earlier version. */
  async prepare({ create, migration = NO_MIGRATION }: PostgresOptions): Promise<void> {
    const prepare = (client: ClientBase): Promise<boolean> =>
      prepareSchema(client, this.schema, create !== false)
    if (!(await withClient(this.#writer, prepare))) return
    const client = await this.connect({}, 0)
    try {
      await migrateSchema(client, this.schema, migration)
    } finally {
      await client.end()
    }
  }

  /**
   * Opens a connection for locks, with these settings. It does not come from a pool, since it must stay the same.
   * @param limit milliseconds after which a statement rejects; 0: no limit
   */
  async connect(settings: Readonly<Record<string, number>>, limit: number): Promise<PostgresClient> {
    const more = Object.entries(settings).map(([name, value]) => ` -c ${name}=${value}`)
    const options = this.#config.options + more.join('')
    const client = new PostgresClient({ ...this.#config, options, query_timeout: limit })
    client.on('error', () => {})
    await client.connect()
    return client
  }

  async query<Row extends object = SqlRow>(
    sql: string,
    values: readonly SqlValue[] = [],
  ): Promise<readonly Row[]> {
    const rows = await this.#named(
      withClient(this.#readers, (client) => this.#statements.run(client, { sql, values })),
    )
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller knows the columns that it names
    return rows as readonly object[] as readonly Row[]
  }

  /**
   * A transaction that was sent may still be committed after the time limit. The sender's repeat is then a duplicate.
   */
  write<Result>(work: () => Tx<Result>, { announces, isLazy }: WriteOptions = {}): Promise<Result> {
    return this.#named(awaitWithin(STORAGE_LIMIT_MS, this.#commits.add(work, { announces, isLazy })))
  }

  async usedBytes(): Promise<number> {
    const [row] = await this.query<{ bytes: number }>(USED)
    return row?.bytes ?? 0
  }

  /** The server reuses free space by itself. */
  shrink(): Promise<boolean> {
    return Promise.resolve(false)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#commits.end()
    const ended = Promise.all([this.#writer.end(), this.#readers.end()])
    await awaitWithin(GOODBYE_MS, ended).catch(() => {})
    for (const socket of this.#sockets) socket.destroy()
  }

  async #commit(batch: readonly PendingTransaction[]): Promise<readonly unknown[]> {
    try {
      return await withClient(this.#writer, (client) => this.#transaction(client, batch))
    } catch (error) {
      // Frees the lock for the next transaction.
      if (errorCode(error) === '55P03') await this.#readers.query(FREE_LOCK).catch(() => {})
      throw error
    }
  }

  async #transaction(client: PoolClient, batch: readonly PendingTransaction[]): Promise<readonly unknown[]> {
    const sent: Promise<unknown>[] = []
    /** Does not wait for the answer: the connection keeps the order, and failures are known at the end. */
    const send: Send = (answer) => {
      answer.catch(() => {})
      sent.push(answer)
      return answer
    }
    try {
      gather(client)
      void send(client.query(`BEGIN; ${LOCK_WRITERS}; ${requireVersion()}`))
      const results: unknown[] = []
      try {
        for (const { work, since } of batch) {
          const isGivenUp = performance.now() > since + STORAGE_LIMIT_MS
          results.push(isGivenUp ? undefined : await this.#run(client, work(), send))
        }
      } catch (error) {
        await inOrder(sent)
        throw error
      }
      const commit = send(client.query(this.#commitText(batch)))
      await inOrder(sent)
      // The driver reports no error for COMMIT of a failed transaction.
      if ([await commit].flat().at(-1)?.command !== 'COMMIT') throw postgresFailure('slow')
      return results
    } catch (error) {
      if (isOfTransaction(error)) await client.query('ROLLBACK')
      throw error
    }
  }

  /**
   * Commits and notifies other relays. Without a write there is no notice, because the notice alone would cost a flush.
   */
  #commitText(batch: readonly PendingTransaction[]): string {
    if (batch.every(({ announces }) => !announces)) return 'COMMIT'
    const numbers = [...new Set(batch.flatMap(({ announces = [] }) => announces))].slice(0, MAX_NUMBERS)
    const notice = `pg_notify(current_schema(), '${this.id} ${numbers.join(' ')}')`
    return `SELECT ${notice} WHERE pg_current_xact_id_if_assigned() IS NOT NULL; COMMIT`
  }

  /** Runs a transaction to its end. */
  async #run<Result>(client: PoolClient, transaction: Tx<Result>, send: Send): Promise<Result> {
    let step = advance(transaction, [])
    while (step.done !== true) {
      let rows: readonly SqlRow[] = []
      if ('sql' in step.value) {
        rows = await this.#statements.run(client, step.value)
        gather(client)
      } else for (const each of joined(step.value)) void send(this.#statements.run(client, each))
      step = advance(transaction, rows)
    }
    return step.value
  }

  #socket(): Socket {
    const socket = new Socket()
    this.#sockets.add(socket)
    return socket.once('close', () => this.#sockets.delete(socket))
  }

  async #named<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work
    } catch (error) {
      throw postgresError(isTimeout(error) ? postgresFailure('slow') : error, this)
    }
  }
}

/** Most statements that are joined. Each further number would add new texts to prepare. */
const MAX_JOINED = 6

/**
 * Joins statements that run at the same time into one. Each one sent separately takes as long as its work (measured).
 */
function joined(statements: readonly Statement[]): readonly Statement[] {
  if (statements.length === 1 || statements.length > MAX_JOINED) return statements
  const parts = statements.map(({ sql }, i) => `part${i} AS (${sql})`)
  return [{ sql: `WITH ${parts.join(', ')} SELECT`, values: statements.flatMap(({ values }) => values) }]
}

/**
 * Sends everything from this turn of the event loop in one write. A write for each statement takes a third of this
 * process's time.
 */
function gather({ connection: { stream } }: PoolClient): void {
  stream.cork()
  process.nextTick(() => stream.uncork())
}

/** Awaits answers in order, so that the first failure is thrown rather than its consequences. @throws that failure */
async function inOrder(sent: readonly Promise<unknown>[]): Promise<void> {
  for (const each of sent) await each
}

type Send = <Answer>(answer: Promise<Answer>) => Promise<Answer>

/**
 * Advances a transaction. Converts what the transaction itself throws, which is no failure of the connection or of
 * another transaction.
 * @throws RelayError
 */
function advance<Result>(transaction: Tx<Result>, rows: readonly SqlRow[]): ReturnType<Tx<Result>['next']> {
  try {
    return transaction.next(rows)
  } catch (error) {
    throw toRelayError(error)
  }
}

/**
 * Runs work on a pooled connection. Closes the connection after a failure of anything but a statement, since its state
 * is unknown.
 * @throws as `work` does
 */
async function withClient<Result>(
  pool: Pool,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  try {
    const result = await work(client)
    client.release()
    return result
  } catch (error) {
    client.release(!isOfTransaction(error))
    throw error
  }
}

/** Prepared statements per connection. relay has some 60, and a few more for each kind of filter. */
const MAX_NAMED = 200

/** Translates statements, and names each one, so that a connection prepares it once. */
class Statements {
  readonly #known = new Map<string, { readonly text: string; readonly name?: string }>()

  async run(client: ClientBase, { sql, values }: Statement): Promise<readonly SqlRow[]> {
    let prepared = this.#known.get(sql)
    if (!prepared) {
      const text = numbered(sql)
      prepared = this.#known.size < MAX_NAMED ? { text, name: `relay${this.#known.size}` } : { text }
      if (prepared.name !== undefined) this.#known.set(sql, prepared)
    }
    const { rows } = await client.query<SqlRow>({ ...prepared, values: values.map(toParameter) })
    return rows
  }
}
