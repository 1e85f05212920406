import { profileCommand } from '../base/command-line.js'
import { errorCode, type ErrorKind, RelayError, isError } from '../base/errors.js'
import { STORAGE_LIMIT_MS } from './sql.js'

/** Error for a failure that relay itself detected, with a code of its own or a SQLSTATE. */
export function postgresFailure(code: string): Error {
  return Object.assign(new Error(code), { code })
}

const AWAY = 'it cannot be reached. Start it, or check the address; a running relay then continues by itself'
const SLOW = `it did not answer within ${STORAGE_LIMIT_MS / 1000} s. Check its load and its disk`
const WITH_PASSWORD = 'Set PGPASSWORD, ~/.pgpass or RELAY_STORE_FILE'
const REJECTED = `it rejected the user or the password. ${WITH_PASSWORD}`
const DAMAGED = 'it is damaged. See its log'
const STARTING = 'it is starting or stopping. A running relay continues by itself'
const CERTIFICATE = 'its certificate is not trusted. Name the authority with sslrootcert=FILE in the address'
const NO_TLS = 'it does not offer TLS. Turn on ssl in its configuration, or set sslmode in the address'
/**
 * pgbouncer refuses or forgets the settings of a session, and in transaction mode its prepared statements
 * (pgbouncer.org/features.html).
 */
const POOLER =
  "a pooler such as pgbouncer is in front of it, which does not keep what relay sets for a connection. Use the server's own address"

/** Reason for the division by zero in `requireVersion`, the only statement that divides. */
const NEWER_NOW =
  'a newer version of relay has changed it meanwhile. Stop this relay, and start it again with that version'

/** Reasons by SQLSTATE (PostgreSQL 15, appendix A), Node's error code, or relay's own. */
const POSTGRES_REASONS: Readonly<Record<string, string>> = {
  EACCES: 'its socket may not be used by this user. Check the permissions of the socket',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name. Use that name in the address',
  CERT_HAS_EXPIRED: 'its certificate has expired. Renew it',
  '08P01': POOLER,
  '26000': POOLER,
  '22012': NEWER_NOW,
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
    'it was written by an earlier version of relay, which this one cannot read. It is unchanged. Choose another profile with --profile, or remove this one with RESET; then set the same webhook secret or repair the hooks, and sign in again. Update all relays of it at once',
  members:
    'it was written by an earlier version of relay, and relays of that version run on it. It is unchanged. Stop them all, then start this one, which brings it to this version',
  encoding: 'its encoding is not UTF8. Create it with createdb --encoding=UTF8 --template=template0',
  version: 'it is older than PostgreSQL 14. Update it',
  slow: SLOW,
  password: `it needs a password. ${WITH_PASSWORD}`,
  'open-password-file': 'the password file is not used, because other users can read it. chmod 600 ~/.pgpass',
  pooler: POOLER,
  missing: 'it has no data of this profile. START with it once, or check the address and --profile',
}

/** Error kinds of the codes that are no failure of the database. */
const KINDS: Readonly<Record<string, ErrorKind>> = {
  missing: 'no_match',
  earlier: 'settings',
  newer: 'settings',
  members: 'unavailable',
}

/** Names a database, and the profile whose data it has. */
export interface Named {
  readonly name: string
  readonly profile: string
}

/** Error for a failure of a database: what failed, why, and what to do. Quotes no value of a row. */
export function postgresError(error: unknown, { name, profile }: Named): RelayError {
  if (error instanceof RelayError) return error
  const code = errorCode(error)
  const kind = KINDS[code ?? ''] ?? 'storage'
  // The server's message may quote values, so the cause has only the code.
  const cause = new Error(`PostgreSQL: ${code}`)
  const command = profileCommand(profile)
  const reason = reasonOf(error, code)
    .replace('RESET', () => command('reset'))
    .replace('START', () => command('serve'))
  return new RelayError(kind, `The database ${name} cannot be used: ${reason}`, { cause })
}

function reasonOf(error: unknown, code: string | undefined): string {
  if (code !== undefined) {
    const known =
      POSTGRES_REASONS[code] ?? (/CERT|ISSUER|LEAF_SIGNATURE/.test(code) ? CERTIFICATE : undefined)
    // No SQLSTATE begins with E. All other system errors mean that the server cannot be reached.
    return known ?? (/^E[A-Z]/.test(code) ? AWAY : `it reported error ${code}. See its log`)
  }
  // The driver gives no code for a connection that ended or took too long to open, or for a server without TLS.
  return isError(error) && error.message.includes('does not support SSL') ? NO_TLS : AWAY
}

/** True if only the transaction failed, and the connection can be used again. */
export function isOfTransaction(error: unknown): boolean {
  return error instanceof RelayError || (isError(error) && 'severity' in error && error.severity === 'ERROR')
}
