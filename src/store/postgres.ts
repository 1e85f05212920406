import { createHash, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Writable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import type { ConnectionOptions } from 'node:tls'
import { Client as BaseClient, type ClientBase, Pool, type PoolClient, type PoolConfig } from 'pg'
import pgpass from 'pgpass'
import { errorCode } from '../base/errno.js'
import { RelayError, toRelayError } from '../base/errors.js'
import type { SharedStore } from '../base/shared-store.js'
import { SCHEMA, VERSION } from './schema.js'
import {
  LIMIT_MS,
  type Sql,
  type SqlRow,
  type SqlValue,
  type Statement,
  type Tx,
  type WriteOptions,
} from './sql.js'

/** Connections that one relay has open: one that writes, one for the session that holds locks, and those that read. */
export const CONNECTIONS = 6
const READERS = CONNECTIONS - 2
/** Milliseconds. The server ends what takes longer, before the caller's limit, so that the reason is known. */
const STATEMENT_LIMIT = LIMIT_MS - 500
const LOCK_LIMIT = LIMIT_MS - 1000
const CONNECT_LIMIT = LIMIT_MS - 500
/** A relay that is stopped between two statements of a transaction loses it after this, so that others can write. */
const IDLE_LIMIT = LIMIT_MS
/** After so long without an answer a connection is closed: it is dead, but looks alive. */
const STUCK_MS = 2 * LIMIT_MS
/** A connection that died without a word is found after this, while it is idle. */
const KEEP_ALIVE_MS = 10_000
/** Transactions in one commit: enough that a burst shares a flush, few enough that none waits long for the others. */
const MAX_BATCH = 64
/** While the database is slow, what waits for it must not fill the memory. */
const MAX_WAITING = 4096
/** PostgreSQL 13 gets no fixes since November 2025. */
const OLDEST_SERVER = 140_000
/** An identifier has at most 63 bytes. */
const MAX_NAME = 63

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
  /** A new connection for locks, with these settings: not one of a pool, since it must stay the same. */
  connect(settings: Readonly<Record<string, number>>): Promise<BaseClient>
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

  async connect(settings: Readonly<Record<string, number>>): Promise<BaseClient> {
    const more = Object.entries(settings).map(([name, value]) => ` -c ${name}=${value}`)
    const client = new Client({ ...this.#config, options: this.#config.options + more.join('') })
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
    if (this.#fault?.fails) return this.#named(Promise.reject(new PostgresFailure('53100')))
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
        if (isOfOne) await this.#commit([each])
        else each.reject(error)
      }
    }
  }

  async #transaction(client: PoolClient, batch: readonly Waiting[]): Promise<unknown[]> {
    const run = (sql: string): Promise<readonly SqlRow[]> => this.#statements.run(client, { sql, values: [] })
    try {
      // The first statements are sent behind them, without waiting.
      const begun = Promise.all([client.query('BEGIN'), run(LOCK)])
      begun.catch(() => {})
      const told: Promise<unknown>[] = [begun]
      const results: unknown[] = []
      try {
        for (const { work } of batch) results.push(await this.#run(client, work(), told))
      } catch (error) {
        // What failed first says more than what failed because of it.
        await Promise.all(told)
        throw error
      }
      // Sent before the commit: the connection keeps the order.
      const notified = this.#notify(client, batch)
      const [commit] = await Promise.all([client.query('COMMIT'), notified, ...told])
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

  /** Runs a transaction to its end; `told` gets what was sent and not awaited. */
  async #run<Result>(client: PoolClient, transaction: Tx<Result>, told: Promise<unknown>[]): Promise<Result> {
    let step = goOn(transaction, [])
    while (step.done !== true) {
      const { statements, isTold } = step.value
      const sent = Promise.all(statements.map((statement) => this.#statements.run(client, statement)))
      if (isTold) {
        sent.catch(() => {})
        told.push(sent)
      }
      step = goOn(transaction, isTold ? [] : await sent)
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

/** The types of relay's columns and expressions, by their number in `pg_type.dat`; whole numbers come as text. All others are text. */
const PARSERS: Readonly<Record<number, (text: string) => SqlValue>> = {
  16: (text) => (text === 't' ? 1 : 0),
  17: (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex')),
  20: Number,
  21: Number,
  23: Number,
  701: Number,
  1700: Number,
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

function configOf(store: SharedStore, schema: string): PoolConfig {
  const { host, port, user, database } = store
  return {
    Client,
    host,
    port,
    user,
    database,
    password: () => passwordOf(store),
    ssl: tlsOf(store),
    application_name: `relay ${process.pid}`,
    // Each statement must see what was committed before it, whatever the server's own default.
    options: [
      `-c search_path="${schema}"`,
      String.raw`-c default_transaction_isolation=read\ committed`,
      '-c client_min_messages=error',
      '-c jit=off',
    ].join(' '),
    types: { getTypeParser: (type: number) => PARSERS[type] ?? String },
    statement_timeout: STATEMENT_LIMIT,
    lock_timeout: LOCK_LIMIT,
    connectionTimeoutMillis: CONNECT_LIMIT,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  }
}

/** Server, port and database: all that a person needs to know which one is meant. */
export function nameOf({ host, port, database }: SharedStore): string {
  return `${database} on ${host}${host.startsWith('/') ? '' : `:${port}`}`
}

/** @throws RelayError `settings` when the file with the certificates cannot be read. */
function tlsOf({ sslMode, sslRootCert, host }: SharedStore): false | ConnectionOptions {
  if (sslMode === 'disable' || host.startsWith('/')) return false
  const ca = sslRootCert === undefined ? undefined : readAuthorities(sslRootCert)
  if (sslMode === 'verify-full') return { rejectUnauthorized: true, ...(ca && { ca }) }
  return ca
    ? { rejectUnauthorized: true, ca, checkServerIdentity: () => undefined }
    : { rejectUnauthorized: false }
}

function readAuthorities(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const why = `The file of sslrootcert, ${file}, cannot be read (${errorCode(cause)}). Check its name and its permissions`
    throw new RelayError('settings', why, { cause })
  }
}

/** Servers listen on a socket in one of these folders by default: upstream, and Debian. libpq looks their passwords up as `localhost`. */
const DEFAULT_SOCKETS: ReadonlySet<string> = new Set(['/tmp', '/var/run/postgresql'])

/**
 * The password that was given, else the one in `~/.pgpass`; looked up for each connection that the server asks one of.
 * @throws PostgresFailure where there is none, and for a file that other users can read, which libpq ignores too (PostgreSQL 15, 34.16).
 */
async function passwordOf({ host, port, user, database, secrets }: SharedStore): Promise<string> {
  if (secrets.password) return secrets.password.reveal()
  pgpass.warnTo(warnings)
  const server = DEFAULT_SOCKETS.has(host) ? 'localhost' : host
  const found = await new Promise<string | undefined>((resolve) => {
    pgpass({ host: server, port, user, database }, resolve)
  })
  if (found) return found
  throw new PostgresFailure(isRefused ? 'open-password-file' : 'password')
}

/** The package warns of a file that it does not use, on stderr unless it is given a stream. */
let isRefused = false
const warnings = new Writable({
  write(_chunk, _encoding, done) {
    isRefused = true
    done()
  },
})

/** The name of a profile's schema. A profile that is too long for an identifier gets a digest, so that no two share one. */
function schemaName(profile: string): string {
  const name = `relay_${profile}`
  if (name.length <= MAX_NAME) return name
  const digest = createHash('sha256').update(profile).digest('hex').slice(0, 16)
  return `${name.slice(0, MAX_NAME - digest.length - 1)}-${digest}`
}

/** Asks the catalogue: a name that this session could not resolve before stays unknown to it for a while. */
const STATE = `SELECT current_setting('server_version_num')::int AS server, current_setting('server_encoding') AS encoding,
  current_setting('search_path') AS path,
  EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'relay_schema') AS made`

type State = {
  readonly server: number
  readonly encoding: string
  readonly path: string
  readonly made: number
}

/** Makes the profile's schema. One of several relays that start at once does it. @throws PostgresFailure, and the driver's errors. */
async function prepareSchema(client: ClientBase, schema: string, create: boolean): Promise<void> {
  if (await isMade(client, schema)) return
  if (!create) throw new PostgresFailure('missing')
  await client.query('BEGIN')
  try {
    await client.query(`SELECT pg_advisory_xact_lock(hashtextextended('relay schema', 0))`)
    if (!(await isMade(client, schema))) {
      // Asked first, because IF NOT EXISTS needs the right to create also where there is nothing to do.
      const found = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
      if (found.rowCount === 0) await client.query(`CREATE SCHEMA ${client.escapeIdentifier(schema)}`)
      await client.query(translate(SCHEMA))
    }
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
}

/** PostgreSQL's types in place of SQLite's. Keys are compared by their bytes, whatever the database's own order is. */
function translate(sql: string): string {
  return (
    sql.replaceAll(/\bBLOB\b/g, 'BYTEA').replaceAll(/\bTEXT\b/g, 'TEXT COLLATE "C"') +
    'CREATE INDEX delivery_size ON delivery (n) INCLUDE (size);'
  )
}

async function isMade(client: ClientBase, schema: string): Promise<boolean> {
  const [server] = (await client.query<State>(STATE, [schema])).rows
  if (!server || server.server < OLDEST_SERVER) throw new PostgresFailure('version')
  // A pooler forgets the settings of a session.
  if (server.path !== `"${schema}"`) throw new PostgresFailure('pooler')
  if (server.encoding !== 'UTF8') throw new PostgresFailure('encoding')
  if (!server.made) return false
  const table = `${client.escapeIdentifier(schema)}.relay_schema`
  const [row] = (await client.query<{ version: number }>(`SELECT version FROM ${table}`)).rows
  const version = row?.version ?? 0
  if (version !== VERSION) throw new PostgresFailure(version < VERSION ? 'earlier' : 'newer')
  return true
}

/** A failure that relay itself found, under a code of its own or a SQLSTATE. */
export class PostgresFailure extends Error {
  readonly code: string

  constructor(code: string) {
    super(code)
    this.code = code
  }
}

const AWAY = 'it cannot be reached. Start it, or check the address; a running relay then continues by itself'
const SLOW = `it did not answer within ${LIMIT_MS / 1000} s. Check its load and its disk`
const WITH_PASSWORD = 'Set PGPASSWORD, ~/.pgpass or RELAY_STORE_FILE'
const REJECTED = `it rejected the user or the password. ${WITH_PASSWORD}`
const DAMAGED = 'it is damaged. See its log'
const STARTING = 'it is starting or stopping. A running relay continues by itself'
const CERTIFICATE = 'its certificate is not trusted. Name the authority with sslrootcert=FILE in the address'
const NO_TLS = 'it does not offer TLS. Turn on ssl in its configuration, or set sslmode in the address'
/** pgbouncer refuses or forgets the settings of a session, and in transaction mode its prepared statements (pgbouncer.org/features.html). */
const POOLER =
  "a pooler such as pgbouncer is in front of it, which does not keep what relay sets for a connection. Use the server's own address"

/** By SQLSTATE (PostgreSQL 15, appendix A), Node's error code, or relay's own. */
const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: AWAY,
  ECONNRESET: AWAY,
  EPIPE: AWAY,
  ENOENT: AWAY,
  ENOTFOUND: AWAY,
  EAI_AGAIN: AWAY,
  EHOSTUNREACH: AWAY,
  ENETUNREACH: AWAY,
  ETIMEDOUT: AWAY,
  EACCES: 'its socket may not be used by this user. Check the permissions of the socket',
  SELF_SIGNED_CERT_IN_CHAIN: CERTIFICATE,
  DEPTH_ZERO_SELF_SIGNED_CERT: CERTIFICATE,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: CERTIFICATE,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: CERTIFICATE,
  UNABLE_TO_GET_ISSUER_CERT: CERTIFICATE,
  CERT_SIGNATURE_FAILURE: CERTIFICATE,
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name. Use that name in the address',
  CERT_HAS_EXPIRED: 'its certificate has expired. Renew it',
  '08P01': POOLER,
  '26000': POOLER,
  '25006': 'it only reads: a standby, or set to read-only. Use the address of the primary',
  '28000': REJECTED,
  '28P01': REJECTED,
  '3D000': 'there is no database of that name. Create it with createdb, or change the address',
  '42501':
    'its user lacks a right. Allow it with GRANT CREATE ON DATABASE … TO …, or use the owner of the schema',
  '42P07': 'its schema belongs to another program. Choose another database or profile',
  '53100': 'its disk is full. Free some space; a running relay then continues by itself',
  '53200': 'its memory is exhausted. Check its load',
  '53300': 'it has no connection left. Raise max_connections, or run fewer relays',
  '55P03': 'another relay held it for too long. End a relay that is stopped or hangs',
  '57014': SLOW,
  '57P01': 'it ended the connection. A running relay continues by itself',
  '57P02': STARTING,
  '57P03': STARTING,
  '57P05': AWAY,
  '58030': 'its disk reported an error. See its log',
  XX001: DAMAGED,
  XX002: DAMAGED,
  newer: 'it was written by a newer version of relay. Update relay, or choose another profile with --profile',
  earlier:
    'it was written by an earlier version of relay, which this one cannot read. It is unchanged. Choose another profile with --profile, or remove this one with relay reset; then set the same webhook secret or repair the hooks, and sign in again. Update all relays of it at once',
  encoding: 'its encoding is not UTF8. Create it with createdb --encoding=UTF8 --template=template0',
  version: 'it is older than PostgreSQL 14. Update it',
  slow: SLOW,
  busy: 'too much waits for it. Try again later',
  closed: 'it is closed',
  password: `it needs a password. ${WITH_PASSWORD}`,
  'open-password-file': 'the password file is not used, because other users can read it. chmod 600 ~/.pgpass',
  'no-tls': NO_TLS,
  pooler: POOLER,
  missing:
    'it has no data of this profile. Start relay serve with it once, or check the address and --profile',
}

/** The error for a failure of the database called `name`: what failed, why, and what to do. Holds no value of a row. */
export function postgresError(error: unknown, name: string): RelayError {
  if (error instanceof RelayError) return error
  const code = codeOf(error)
  // The driver gives no code for a connection that ended, that took too long to open, or to a server without TLS.
  const isDrivers = errorCode(error) === undefined
  const isPlain = isDrivers && error instanceof Error && error.message.includes('does not support SSL')
  const known = isPlain ? NO_TLS : REASONS[code]
  const reason = known ?? (isDrivers ? AWAY : `it reported error ${code}. See its log`)
  const kind =
    code === 'missing' ? 'no_match' : code === 'earlier' || code === 'newer' ? 'settings' : 'storage'
  // What the server says may quote values, so the cause is made of the code alone.
  const cause = new Error(`PostgreSQL: ${code}`)
  return new RelayError(kind, `The database ${name} cannot be used: ${reason}`, { cause })
}

/** The SQLSTATE, Node's error code, or relay's own. */
export function codeOf(error: unknown): string {
  return errorCode(error) ?? 'unknown'
}

/** Whether only the transaction has failed, and the connection can be used again. */
function isOfTransaction(error: unknown): boolean {
  return (
    error instanceof RelayError ||
    (error instanceof Error && 'severity' in error && error.severity === 'ERROR')
  )
}
