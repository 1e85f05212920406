import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Writable } from 'node:stream'
import type { ConnectionOptions } from 'node:tls'
import { Client as BaseClient, type ClientConfig, type PoolConfig } from 'pg'
import pgpass from 'pgpass'
import { decodeText, NotText } from '../base/decode.js'
import { errorCode, RelayError } from '../base/errors.js'
import type { SharedStore } from '../base/shared-store.js'
import { postgresFailure } from './postgres-error.js'
import { STORAGE_LIMIT_MS, type SqlValue } from './sql.js'

/** Server-side limits in milliseconds. They are shorter than the caller's limit, so that the reason is known. */
const STATEMENT_LIMIT = STORAGE_LIMIT_MS - 500
const LOCK_LIMIT = STORAGE_LIMIT_MS - 1000
/** Closes a connection that has not answered for this long: it is dead, but looks alive. */
const STUCK_MS = 2 * STORAGE_LIMIT_MS
/** Detects an idle connection that died silently. Milliseconds. */
const KEEP_ALIVE_MS = 10_000
/** Longest identifier of PostgreSQL, in bytes. */
const MAX_NAME = 63

/**
 * Parsers for the types of relay's columns and expressions, by their number in `pg_type.dat`. Large integers arrive as
 * text. All other types are text.
 */
const PARSERS: Readonly<Record<number, (text: string) => SqlValue>> = {
  16: (text) => (text === 't' ? 1 : 0),
  17: (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex')),
  20: Number,
  21: Number,
  23: Number,
  701: Number,
  1700: Number,
}

/** Connection that closes after an error. The driver would leave one open for which it has no password. */
export class PostgresClient extends BaseClient {
  constructor(config?: ClientConfig) {
    super(config)
    this.connection.on('error', () => this.connection.stream.destroy())
  }
}

export function configOf(store: SharedStore, schema: string): PoolConfig {
  const { host, port, user, database } = store
  return {
    Client: PostgresClient,
    host,
    port,
    user,
    database,
    password: () => passwordOf(store),
    ssl: tlsOf(store),
    application_name: `relay ${process.pid}`,
    // Each statement must see what was committed before it, whatever the server's default is.
    options: [
      `-c search_path="${schema}"`,
      String.raw`-c default_transaction_isolation=read\ committed`,
      '-c client_min_messages=error',
      '-c jit=off',
      // A plan that was made for an empty table would be reused, and later scan the whole table.
      '-c enable_seqscan=off',
    ].join(' '),
    types: { getTypeParser: (type: number) => PARSERS[type] ?? String },
    statement_timeout: STATEMENT_LIMIT,
    lock_timeout: LOCK_LIMIT,
    connectionTimeoutMillis: STATEMENT_LIMIT,
    query_timeout: STUCK_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  }
}

/** @throws RelayError `settings` when the file of certificates cannot be read */
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
    return decodeText(readFileSync(file))
  } catch (cause) {
    const why =
      cause instanceof NotText
        ? `The file of sslrootcert, ${file}, ${cause.message}`
        : `The file of sslrootcert, ${file}, cannot be read (${errorCode(cause)}). Check its name and its permissions`
    throw new RelayError('settings', why, { cause })
  }
}

/** Default folders of a server's socket, upstream and in Debian. libpq looks up their passwords as `localhost`. */
const DEFAULT_SOCKETS: ReadonlySet<string> = new Set(['/tmp', '/var/run/postgresql'])

/**
 * Returns the password from the settings, or the one in `~/.pgpass`. Looked up for each connection for which the server
 * asks for one.
 * @throws Error with a code of postgres-error.ts if there is none, or if other users can read the file, which libpq
 * also ignores (PostgreSQL 15, 34.16)
 */
async function passwordOf({ host, port, user, database, secrets }: SharedStore): Promise<string> {
  if (secrets.password) return secrets.password.reveal()
  pgpass.warnTo(warnings)
  const server = DEFAULT_SOCKETS.has(host) ? 'localhost' : host
  const found = await new Promise<string | undefined>((resolve) => {
    pgpass({ host: server, port, user, database }, resolve)
  })
  if (found) return found
  throw postgresFailure(isRefused ? 'open-password-file' : 'password')
}

/** The package writes a warning to this stream when it ignores a file. */
let isRefused = false
const warnings = new Writable({
  write(_chunk, _encoding, done) {
    isRefused = true
    done()
  },
})

/**
 * Name of a profile's schema. A profile's name that is too long for an identifier gets a digest, so that no two
 * profiles share a schema.
 */
export function schemaName(profile: string): string {
  const name = `relay_${profile}`
  if (name.length <= MAX_NAME) return name
  const digest = createHash('sha256').update(profile).digest('hex').slice(0, 16)
  return `${name.slice(0, MAX_NAME - digest.length - 1)}-${digest}`
}

/** Replaces each `?` outside quotes by `$1`, `$2`, …. */
export function numbered(sql: string): string {
  let count = 0
  return sql.replaceAll(/'[^']*'|\?/g, (match) => (match === '?' ? `$${++count}` : match))
}

/**
 * Converts a value to a parameter. NUL is replaced, because text columns cannot store it. Encoding replaces unpaired
 * surrogates by U+FFFD.
 */
export function toParameter(value: SqlValue): string | Buffer | null {
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '\u{fffd}') : value
  return value && Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}
