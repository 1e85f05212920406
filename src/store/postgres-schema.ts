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

/** PostgreSQL 13 has had no fixes since November 2025. */
const OLDEST_SERVER = 140_000
/** Interval between checks whether another relay has finished migrating. Milliseconds. */
const LOOK_MS = 250
/**
 * A migration has no time limit, but a relay that is suspended between two of its statements loses the transaction
 * after a minute.
 */
const MIGRATION_LIMITS =
  'SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 60000'

/** Reads the catalogue, because a session remembers for a while that a name did not exist. */
const STATE = `SELECT current_setting('server_version_num')::int AS server, current_setting('server_encoding') AS encoding,
  current_setting('search_path') AS path,
  EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'relay_schema') AS made`

type State = {
  readonly server: number
  readonly encoding: string
  readonly path: string
  readonly made: number
}

/**
 * SQL that fails with a division by zero (SQLSTATE 22012), and so aborts its transaction, if another version has
 * migrated the data.
 */
export function requireVersion(): string {
  return `SELECT 1 / (version = ${currentVersion()})::int FROM relay_schema`
}

/**
 * Creates the profile's schema if it is missing. Of several relays that start at once, one does it. Returns true if the
 * schema has to be migrated.
 * @throws Error with a code of postgres-error.ts, and the driver's errors
 */
export async function prepareSchema(client: ClientBase, schema: string, create: boolean): Promise<boolean> {
  const version = await versionOf(client, schema)
  if (version !== undefined) return isMigratable(version)
  if (!create) throw postgresFailure('missing')
  await client.query('BEGIN')
  try {
    await client.query(`SELECT pg_advisory_xact_lock(hashtextextended('relay schema', 0))`)
    if ((await versionOf(client, schema)) === undefined) {
      // Checked first, because IF NOT EXISTS needs the right to create even for an existing schema.
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
 * Migrates the schema to this version, one transaction for each step, while no other relay of the profile runs and
 * nothing else writes. Waits while another relay migrates it.
 * @param client its own connection, without a limit for statements
 * @throws Error with a code of postgres-error.ts, and the driver's errors
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

/** Runs one step. Returns false while another relay migrates. @throws as {@link migrateSchema} */
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
      // Another relay may have done this step just before.
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

/** Translates SQLite's types to PostgreSQL's. Keys compare by their bytes, whatever the database's collation is. */
function translate(sql: string): string {
  return sql
    .replaceAll(/\bBLOB\b/g, 'BYTEA')
    .replaceAll(/\bTEXT\b/g, 'TEXT COLLATE "C"')
    .replaceAll('INTEGER PRIMARY KEY', 'BIGINT PRIMARY KEY')
    .replaceAll('WITHOUT ROWID', '')
}

/** Version of the schema. Undefined if it is missing. */
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

/**
 * True if data of this version can be migrated. @throws Error with a code of postgres-error.ts for data that this
 * program cannot use
 */
function isMigratable(version: number): boolean {
  const found = suits(version)
  if (found === 'earlier' || found === 'newer') throw postgresFailure(found)
  return found === 'migrates'
}
