import { createHash } from 'node:crypto'
import type { ClientBase } from 'pg'
import { MIGRATIONS, SCHEMA, type SchemaState, SET_VERSION, VERSION } from '../schema.js'
import { PostgresFailure } from './error.js'

/** The oldest server that gets fixes has all that relay uses. */
const OLDEST_SERVER = 130_000
/** An identifier has at most 63 bytes. */
const MAX_NAME = 63
const PREFIX = 'relay_'

/** The name of a profile's schema. A profile that is too long for an identifier gets a digest, so that no two share one. */
export function schemaName(profile: string): string {
  const name = PREFIX + profile
  if (name.length <= MAX_NAME) return name
  const digest = createHash('sha256').update(profile).digest('hex').slice(0, 16)
  return `${name.slice(0, MAX_NAME - digest.length - 1)}-${digest}`
}

/** The setting by which the statements of a connection find the schema. */
export function searchPath(schema: string): string {
  return `"${schema}"`
}

/**
 * What PostgreSQL has in place of SQLite's types. Keys are compared by their bytes, as SQLite does, whatever the database's own
 * order is.
 */
function translate(sql: string): string {
  return sql
    .replaceAll(/\bINTEGER PRIMARY KEY\b/g, 'BIGINT PRIMARY KEY')
    .replaceAll(/\bBLOB\b/g, 'BYTEA')
    .replaceAll(/\bTEXT\b/g, 'TEXT COLLATE "C"')
}

/**
 * The number of a new delivery, as SQLite gives it: one more than the largest. One transaction writes at a time (see `engine.ts`), so the
 * order of the numbers is the order of the commits. The index makes the sum of the sizes cheap.
 */
const NUMBERS = `
CREATE FUNCTION next_number() RETURNS BIGINT LANGUAGE sql AS 'SELECT coalesce(max(n), 0) + 1 FROM delivery';
ALTER TABLE delivery ALTER n SET DEFAULT next_number();
CREATE INDEX delivery_size ON delivery (n) INCLUDE (size);
`

/** Asks the catalogue: a name that this session could not resolve before stays unknown to it for a while. */
const STATE = `SELECT current_setting('server_version_num')::int AS server, current_setting('server_encoding') AS encoding,
  current_setting('search_path') AS path,
  EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'relay_schema') AS made`

type State = {
  readonly server: number
  readonly encoding: string
  readonly path: string
  readonly made: boolean
}

/**
 * Makes the profile's schema, or changes an earlier version's. One of several relays that start at once does it.
 * @throws PostgresFailure for a server or a schema that this program cannot use, and `missing` where there is none and none may
 * be made; the driver's errors.
 */
export async function prepareSchema(client: ClientBase, schema: string, create: boolean): Promise<void> {
  const { state } = await readState(client, schema)
  if (state === 'current') return
  if (state === 'empty' && !create) throw new PostgresFailure('missing')
  await client.query('BEGIN')
  try {
    await client.query(`SELECT pg_advisory_xact_lock(hashtextextended('relay schema', 0))`)
    const { state, version } = await readState(client, schema)
    if (state === 'empty') await makeSchema(client, schema)
    if (state === 'older') await migrate(client, version)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
}

interface Found {
  readonly state: SchemaState
  /** 0 where there is none. */
  readonly version: number
}

async function readState(client: ClientBase, schema: string): Promise<Found> {
  const [server] = (await client.query<State>(STATE, [schema])).rows
  if (!server || server.server < OLDEST_SERVER) throw new PostgresFailure('version')
  if (server.path !== searchPath(schema)) throw new PostgresFailure('pooler')
  if (server.encoding !== 'UTF8') throw new PostgresFailure('encoding')
  if (!server.made) return { state: 'empty', version: 0 }
  const table = `${client.escapeIdentifier(schema)}.relay_schema`
  const [row] = (await client.query<Version>(`SELECT version, oldest FROM ${table}`)).rows
  if (!row || row.oldest > VERSION) throw new PostgresFailure('newer')
  return { state: row.version < VERSION ? 'older' : 'current', version: row.version }
}

type Version = { readonly version: number; readonly oldest: number }

async function makeSchema(client: ClientBase, schema: string): Promise<void> {
  // Asked first, because IF NOT EXISTS needs the right to create also where there is nothing to do.
  const found = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
  if (found.rowCount === 0) await client.query(`CREATE SCHEMA ${client.escapeIdentifier(schema)}`)
  await client.query(translate(SCHEMA) + NUMBERS)
}

async function migrate(client: ClientBase, version: number): Promise<void> {
  for (const sql of MIGRATIONS.slice(version - 1)) await client.query(translate(sql))
  await client.query(SET_VERSION)
}
