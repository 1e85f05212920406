import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { type Client as BaseClient, type ClientBase, Pool, type PoolClient, type PoolConfig } from 'pg'
import { RelayError, toRelayError } from '../base/errors.js'
import type { SharedStore } from '../base/shared-store.js'
import { codeOf, isOfTransaction, nameOf, PostgresFailure, postgresError } from './postgres-error.js'
import { Client, configOf, prepareSchema, schemaName } from './postgres-server.js'
import {
  LIMIT_MS,
  type Sql,
  type SqlRow,
  type SqlValue,
  type Statement,
  type Tx,
  type WriteOptions,
} from './sql.js'

/** Connections that read. With the one that writes and the session that holds locks, a relay has six. */
const READERS = 4
/** A relay that is stopped between two statements of a transaction loses it after this, so that others can write. */
const IDLE_LIMIT = LIMIT_MS
/** After so long without an answer a connection is closed: it is dead, but looks alive. */
const STUCK_MS = 2 * LIMIT_MS
/** Transactions in one commit: enough that a burst shares a flush, few enough that none waits long for the others. */
const MAX_BATCH = 64
/** While the database is slow, what waits for it must not fill the memory. */
const MAX_WAITING = 4096
export interface PostgresOptions {
  readonly store: SharedStore
  readonly profile: string
  /** Make the profile's schema where it is missing. Default: true. */
  readonly create?: boolean | undefined
  /** While it says so, each write fails as if the disk were full. For tests. */
  readonly fault?: { readonly fails: boolean } | undefined
}

/** A profile's data in a PostgreSQL database, and what a {@link Session} is made of. */
export interface Postgres extends Sql {
  /**
   * A new connection for locks, with these settings: not one of a pool, since it must stay the same. A statement without an answer within
   * `limit` milliseconds rejects.
   */
  connect(settings: Readonly<Record<string, number>>, limit: number): Promise<BaseClient>
  readonly schema: string
  /** How this relay's notices begin. */
  readonly id: string
  /** The database's name and server, for messages. */
  readonly name: string
}

/**
 * Opens a profile's data in a PostgreSQL database.
 * @throws RelayError `storage` that names the database, why it cannot be used, and what to do; `no_match` where it has no data of the
 * profile and none may be made; `settings` for data of an earlier program, or when the file with the certificates cannot be read.
 */
export async function openPostgres(options: PostgresOptions): Promise<Postgres> {
  const postgres = new PostgresSql(options)
  try {
    await postgres.prepare(options.create !== false)
    return postgres
  } catch (error) {
    await postgres[Symbol.asyncDispose]()
    throw postgresError(error, postgres.name)
  }
}

/** A transaction that waits for its commit. */
interface Waiting {
  readonly work: () => Tx<unknown>
  readonly announces: readonly number[] | undefined
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  isSettled: boolean
}

/**
 * One transaction writes to a profile at a time, whichever relay sends it, as in SQLite: what a transaction reads stays true until it is
 * committed, and numbers are given in the order of the commits.
 */
const LOCK = 'SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), 0))'
/** Notifies other relays, unless the transaction has written nothing: a notice alone would cost a flush. */
const NOTIFY = `SELECT pg_notify(current_schema(), ?) WHERE pg_current_xact_id_if_assigned() IS NOT NULL`
/** A notice has at most 8,000 bytes. */
const MAX_NUMBERS = 400
/** Ends the connections that hold or wait before us for the lock and send nothing: a relay that is stopped while it sends. */
const FREE_LOCK = `SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE locktype = 'advisory' AND granted AND wait_event = 'ClientRead' AND pid <> pg_backend_pid()
    AND ((classid::bigint << 32) | objid::bigint) = hashtextextended(current_schema(), 0) AND objsubid = 1
    AND query_start < clock_timestamp() - interval '2 s'`
/**
 * About what the data takes: bodies, answers, and with each the rows and index entries that belong to it. The size of the files says
 * nothing of it, since they keep the space of what was deleted.
 */
const USED = `SELECT (SELECT coalesce(sum(size + 1024), 0) FROM delivery)
  + (SELECT coalesce(sum(octet_length(answer) + 512), 0) FROM attempt) AS bytes`

class PostgresSql implements Postgres {
  readonly id = randomUUID()
  readonly schema: string
  readonly name: string
  readonly #config: PoolConfig
  readonly #writer: Pool
  readonly #readers: Pool
  readonly #statements = new Statements()
  readonly #fault: PostgresOptions['fault']
  #waiting: Waiting[] = []
  #committing: Promise<void> | undefined
  #isClosed = false

  constructor({ store, profile, fault }: PostgresOptions) {
    this.schema = schemaName(profile)
    this.name = nameOf(store)
    this.#fault = fault
    this.#config = configOf(store, this.schema)
    const limits = { idle_in_transaction_session_timeout: IDLE_LIMIT }
    // The statements of a batch are sent without waiting for each answer.
    this.#writer = new Pool({ ...this.#config, ...limits, max: 1, pipeline: true })
    this.#readers = new Pool({ ...this.#config, max: READERS })
    for (const pool of [this.#writer, this.#readers]) {
      // A connection that ends is replaced when one is needed; what was under way on it is rejected there.
      pool.on('error', () => {})
      pool.on('connect', (client) => client.on('error', () => {}))
    }
  }

  async prepare(create: boolean): Promise<void> {
    const client = await this.#writer.connect()
    try {
      await prepareSchema(client, this.schema, create)
    } finally {
      client.release()
    }
  }

  async connect(settings: Readonly<Record<string, number>>, limit: number): Promise<BaseClient> {
    const more = Object.entries(settings).map(([name, value]) => ` -c ${name}=${value}`)
    const options = this.#config.options + more.join('')
    const client = new Client({ ...this.#config, options, query_timeout: limit })
    client.on('error', () => {})
    await client.connect()
    return client
  }

  async query<Row extends object>(sql: string, values: readonly SqlValue[] = []): Promise<readonly Row[]> {
    const rows = await this.#named(
      withClient(this.#readers, (client) => this.#statements.run(client, { sql, values })),
    )
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller knows the columns that it names
    return rows as readonly object[] as readonly Row[]
  }

  write<Result>(work: () => Tx<Result>, { announces }: WriteOptions = {}): Promise<Result> {
    if (this.#fault?.fails) return Promise.reject(new RelayError('storage', 'no room'))
    if (this.#isClosed) return this.#named(Promise.reject(new PostgresFailure('closed')))
    if (this.#waiting.length >= MAX_WAITING) return this.#named(Promise.reject(new PostgresFailure('busy')))
    const written = new Promise<Result>((resolve, reject) => {
      // What was sent by then may be committed all the same: the sender's repeat is a duplicate.
      const limit = setTimeout(() => settle(() => reject(new PostgresFailure('slow'))), LIMIT_MS)
      const settle = (how: () => void): void => {
        clearTimeout(limit)
        waiting.isSettled = true
        how()
      }
      const waiting: Waiting = {
        work,
        announces,
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `work` returns
        resolve: (result) => settle(() => resolve(result as Result)),
        reject: (error) => settle(() => reject(error)),
        isSettled: false,
      }
      this.#waiting.push(waiting)
      this.#committing ??= this.#commitAll()
    })
    return this.#named(written)
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
    this.#isClosed = true
    await this.#committing
    await Promise.all([this.#writer.end(), this.#readers.end()])
  }

  /** What arrives within a turn of the event loop, or during the last commit, shares a commit. */
  async #commitAll(): Promise<void> {
    for (await setImmediate(); this.#waiting.length > 0; await setImmediate())
      await this.#commit(this.#waiting.splice(0, MAX_BATCH).filter(({ isSettled }) => !isSettled))
    this.#committing = undefined
  }

  /** Does not reject. */
  async #commit(batch: readonly Waiting[]): Promise<void> {
    if (batch.length === 0) return
    try {
      const results = await withClient(this.#writer, (client) => this.#transaction(client, batch))
      for (const [i, { resolve }] of batch.entries()) resolve(results[i])
    } catch (error) {
      if (codeOf(error) === '55P03') await this.#freeLock()
      // Whose fault it is, each finds out alone; a database that is away is away for all of them.
      const isOfOne = batch.length > 1 && isOfTransaction(error)
      for (const each of batch) {
        if (!isOfOne) each.reject(error)
        else if (!each.isSettled) await this.#commit([each])
      }
    }
  }

  async #transaction(client: PoolClient, batch: readonly Waiting[]): Promise<unknown[]> {
    const run = (sql: string): Promise<readonly SqlRow[]> => this.#statements.run(client, { sql, values: [] })
    try {
      // The first statements are sent behind them, without waiting.
      const begun = Promise.all([client.query('BEGIN'), run(LOCK)])
      begun.catch(() => {})
      const unawaited: Promise<unknown>[] = [begun]
      const results: unknown[] = []
      try {
        for (const each of batch)
          results.push(each.isSettled ? undefined : await this.#run(client, each.work(), unawaited))
      } catch (error) {
        await Promise.all(unawaited)
        throw error
      }
      // Sent before the commit: the connection keeps the order.
      const notified = this.#notify(client, batch)
      const ended = Promise.all([client.query('COMMIT'), notified])
      ended.catch(() => {})
      // What failed first says more than what failed because of it.
      await Promise.all(unawaited)
      const [commit] = await ended
      // The driver reports no error for a transaction that had failed.
      if (commit.command !== 'COMMIT') throw new PostgresFailure('slow')
      return results
    } catch (error) {
      if (isOfTransaction(error)) await client.query('ROLLBACK')
      throw error
    }
  }

  #notify(client: PoolClient, batch: readonly Waiting[]): Promise<unknown> | undefined {
    if (batch.every(({ announces }) => announces === undefined)) return undefined
    const numbers = [...new Set(batch.flatMap(({ announces = [] }) => announces))].slice(0, MAX_NUMBERS)
    return this.#statements.run(client, { sql: NOTIFY, values: [`${this.id} ${numbers.join(' ')}`] })
  }

  /** Runs a transaction to its end; `unawaited` gets what was sent and not awaited. */
  async #run<Result>(
    client: PoolClient,
    transaction: Tx<Result>,
    unawaited: Promise<unknown>[],
  ): Promise<Result> {
    let step = goOn(transaction, [])
    while (step.done !== true) {
      const { statements, isUnawaited } = step.value
      const sent = Promise.all(statements.map((statement) => this.#statements.run(client, statement)))
      if (isUnawaited) {
        sent.catch(() => {})
        unawaited.push(sent)
      }
      step = goOn(transaction, isUnawaited ? [] : await sent)
    }
    return step.value
  }

  /** So that the next transaction gets the lock. Does not reject. */
  async #freeLock(): Promise<void> {
    await this.#readers.query(FREE_LOCK).catch(() => {})
  }

  async #named<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work
    } catch (error) {
      throw postgresError(error, this.name)
    }
  }
}

/** What the transaction itself throws is no failure of the connection, and of no other transaction. @throws RelayError */
function goOn<Result>(
  transaction: Tx<Result>,
  rows: readonly (readonly SqlRow[])[],
): ReturnType<Tx<Result>['next']> {
  try {
    return transaction.next(rows)
  } catch (error) {
    throw toRelayError(error)
  }
}

/**
 * Runs work on a connection. One that failed other than by a statement, or does not answer, is closed: it is not known what it does.
 * @throws as `work` does; PostgresFailure `slow`
 */
async function withClient<Result>(
  pool: Pool,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  let limit: NodeJS.Timeout | undefined
  try {
    const stuck = new Promise<never>((_, reject) => {
      limit = setTimeout(() => reject(new PostgresFailure('slow')), STUCK_MS)
    })
    const result = await Promise.race([work(client), stuck])
    client.release()
    return result
  } catch (error) {
    client.release(!isOfTransaction(error))
    throw error
  } finally {
    clearTimeout(limit)
  }
}

/** Statements that a connection keeps prepared: relay has some 60, and a few more for each kind of filter. */
const MAX_NAMED = 200

/** Translates statements, and gives the same one the same name each time, so that a connection prepares it once. */
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

/** `$1`, `$2`, … in place of each `?` that is not within quotes. */
function numbered(sql: string): string {
  let count = 0
  return sql.replaceAll(/'[^']*'|\?/g, (match) => (match === '?' ? `$${++count}` : match))
}

/** Columns of text hold no NUL. What is half a surrogate pair becomes U+FFFD when it is encoded. */
function toParameter(value: SqlValue): string | Buffer | null {
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '\u{fffd}') : value
  return value && Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}
