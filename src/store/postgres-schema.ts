import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientBase } from 'pg'
import { postgresFailure } from './postgres-error.js'
import { isLock, lock, LOCK_WRITERS, MEMBER } from './postgres-locks.js'
import { numbered, toParameter } from './postgres-server.js'
import {
  complete,
  currentVersion,
  migrate,
  type MigrationOptions,
  NotMigrated,
  SCHEMA,
  suits,
} from './schema.js'
import type { SqlRow, Statement, Tx } from './sql.js'

/** PostgreSQL 13 gets no fixes since November 2025. */
const OLDEST_SERVER = 140_000
/** Between two looks whether another relay has finished migrating. Milliseconds. */
const LOOK_MS = 250
/** A migration takes as long as it takes, but a relay that is stopped between two statements of one loses it after a minute. */
const MIGRATION_LIMITS =
  'SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 60000'

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

/** Fails by a division by zero (SQLSTATE 22012), and with it the transaction that it is in, where another version has migrated the data. */
export function requireVersion(): string {
  return `SELECT 1 / (version = ${currentVersion()})::int FROM relay_schema`
}

/**
 * Makes the profile's schema where it is missing. One of several relays that start at once does it.
 * Returns whether it has to be migrated.
 * @throws Error with a code of postgres-error.ts, and the driver's errors.
 */
export async function prepareSchema(client: ClientBase, schema: string, create: boolean): Promise<boolean> {
  const version = await versionOf(client, schema)
  if (version !== undefined) return isMigratable(version)
  if (!create) throw postgresFailure('missing')
  await client.query('BEGIN')
  try {
    await client.query(`SELECT pg_advisory_xact_lock(hashtextextended('relay schema', 0))`)
    if ((await versionOf(client, schema)) === undefined) {
      // Asked first, because IF NOT EXISTS needs the right to create also where there is nothing to do.
      const found = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
      if (found.rowCount === 0) await client.query(`CREATE SCHEMA ${client.escapeIdentifier(schema)}`)
      await client.query(`${translate(SCHEMA)} CREATE INDEX delivery_size ON delivery (n) INCLUDE (size);`)
      await runOn(client, complete())
    }
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
  return false
}

/**
 * Brings the schema to this version, one transaction for each step, while no other relay of the profile runs and nothing else writes. Waits
 * while another relay does it. `client`: a connection of its own, without a limit for its statements.
 * @throws Error with a code of postgres-error.ts, and the driver's errors.
 */
export async function migrateSchema(
  client: ClientBase,
  schema: string,
  { migrate: may, startCommand, onSlow }: MigrationOptions,
): Promise<void> {
  if (!may) throw new NotMigrated(`The schema ${schema}`, startCommand)
  for (let isWaiting = false; ;) {
    const version = await versionOf(client, schema)
    if (version === undefined) throw postgresFailure('missing')
    if (!isMigratable(version)) return
    if (await tryStep(client, schema, version, onSlow)) continue
    if (!isWaiting)
      onSlow(`Waiting: another relay brings the data of ${schema} to version ${currentVersion()}`)
    isWaiting = true
    await sleep(LOOK_MS)
  }
}

/** One step. False where another relay migrates. @throws as {@link migrateSchema} */
async function tryStep(
  client: ClientBase,
  schema: string,
  version: number,
  onSlow: MigrationOptions['onSlow'],
): Promise<boolean> {
  await client.query(`BEGIN; ${MIGRATION_LIMITS}`)
  try {
    const taken = await client.query<{ alone: number }>(
      `SELECT ${lock('pg_try_advisory_xact_lock')} AS alone`,
      [MEMBER],
    )
    const isAlone = taken.rows[0]?.alone === 1
    if (isAlone) {
      await client.query(LOCK_WRITERS)
      // Another relay may have done it just before.
      if ((await versionOf(client, schema)) === version) {
        onSlow(`Bringing the data of ${schema} from version ${version} to ${version + 1}`)
        await runOn(client, migrate(version))
      }
    } else {
      const members = `SELECT 1 FROM pg_locks WHERE mode = 'ShareLock' AND ${isLock(1)} LIMIT 1`
      if ((await client.query(members, [MEMBER])).rowCount !== 0) throw postgresFailure('members')
    }
    await client.query('COMMIT')
    return isAlone
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
}

/** Runs a migration, one statement after another. */
async function runOn(client: ClientBase, migration: Tx<void>): Promise<void> {
  let step = migration.next([])
  while (step.done !== true) {
    const rows: SqlRow[] = []
    for (const statement of 'sql' in step.value ? [step.value] : step.value)
      rows.push(...(await client.query<SqlRow>(toPostgres(statement))).rows)
    step = migration.next(rows)
  }
}

function toPostgres({ sql, values }: Statement): { readonly text: string; readonly values: unknown[] } {
  const text = /^\s*(?:CREATE|ALTER)\b/.test(sql) ? translate(sql) : sql
  return { text: numbered(text), values: values.map(toParameter) }
}

/** PostgreSQL's types in place of SQLite's. Keys are compared by their bytes, whatever the database's own order is. */
function translate(sql: string): string {
  return sql
    .replaceAll(/\bBLOB\b/g, 'BYTEA')
    .replaceAll(/\bTEXT\b/g, 'TEXT COLLATE "C"')
    .replaceAll('INTEGER PRIMARY KEY', 'BIGINT PRIMARY KEY')
    .replaceAll('WITHOUT ROWID', '')
}

/** The version of the schema; undefined where it is missing. */
async function versionOf(client: ClientBase, schema: string): Promise<number | undefined> {
  const [server] = (await client.query<State>(STATE, [schema])).rows
  if (!server || server.server < OLDEST_SERVER) throw postgresFailure('version')
  // A pooler forgets the settings of a session.
  if (server.path !== `"${schema}"`) throw postgresFailure('pooler')
  if (server.encoding !== 'UTF8') throw postgresFailure('encoding')
  if (!server.made) return undefined
  const table = `${client.escapeIdentifier(schema)}.relay_schema`
  const [row] = (await client.query<{ version: number }>(`SELECT version FROM ${table}`)).rows
  return row?.version ?? 0
}

/** @throws Error with a code of postgres-error.ts for data that this program cannot use */
function isMigratable(version: number): boolean {
  const found = suits(version)
  if (found === 'earlier' || found === 'newer') throw postgresFailure(found)
  return found === 'migrates'
}
