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
import { LIMIT_MS, type SqlValue } from './sql.js'

/** Milliseconds. The server ends what takes longer, before the caller's limit, so that the reason is known. */
const STATEMENT_LIMIT = LIMIT_MS - 500
const LOCK_LIMIT = LIMIT_MS - 1000
/** After so long without an answer a connection is closed: it is dead, but looks alive. */
const STUCK_MS = 2 * LIMIT_MS
/** A connection that died without a word is found after this, while it is idle. */
const KEEP_ALIVE_MS = 10_000
/** An identifier has at most 63 bytes. */
const MAX_NAME = 63

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

/** A connection that is closed after an error: the driver leaves one open that has no password to give. */
export class Client extends BaseClient {
  constructor(config?: ClientConfig) {
    super(config)
    this.connection.on('error', () => this.connection.stream.destroy())
  }
}

export function configOf(store: SharedStore, schema: string): PoolConfig {
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
      // A plan that was made while a table was empty is kept, and would go through all of it later.
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
    return decodeText(readFileSync(file))
  } catch (cause) {
    const why =
      cause instanceof NotText
        ? `The file of sslrootcert, ${file}, ${cause.message}`
        : `The file of sslrootcert, ${file}, cannot be read (${errorCode(cause)}). Check its name and its permissions`
    throw new RelayError('settings', why, { cause })
  }
}

/** Servers listen on a socket in one of these folders by default: upstream, and Debian. libpq looks their passwords up as `localhost`. */
const DEFAULT_SOCKETS: ReadonlySet<string> = new Set(['/tmp', '/var/run/postgresql'])

/**
 * The password that was given, else the one in `~/.pgpass`; looked up for each connection that the server asks one of.
 * @throws Error with a code of postgres-error.ts where there is none, and for a file that other users can read, which libpq ignores too (PostgreSQL 15, 34.16).
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

/** The package warns of a file that it does not use, on stderr unless it is given a stream. */
let isRefused = false
const warnings = new Writable({
  write(_chunk, _encoding, done) {
    isRefused = true
    done()
  },
})

/** The name of a profile's schema. A profile that is too long for an identifier gets a digest, so that no two share one. */
export function schemaName(profile: string): string {
  const name = `relay_${profile}`
  if (name.length <= MAX_NAME) return name
  const digest = createHash('sha256').update(profile).digest('hex').slice(0, 16)
  return `${name.slice(0, MAX_NAME - digest.length - 1)}-${digest}`
}

/** `$1`, `$2`, … in place of each `?` that is not within quotes. */
export function numbered(sql: string): string {
  let count = 0
  return sql.replaceAll(/'[^']*'|\?/g, (match) => (match === '?' ? `$${++count}` : match))
}

/** Columns of text hold no NUL. What is half a surrogate pair becomes U+FFFD when it is encoded. */
export function toParameter(value: SqlValue): string | Buffer | null {
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '\u{fffd}') : value
  return value && Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}
