import type { SqliteConnection } from './sqlite.js'
import { DatabaseFailure, NEWER_SCHEMA, OTHER_PROGRAM } from './storage-error.js'

/**
 * The version of {@link SCHEMA}, and the oldest version of it that a program may know to work with this one. A change adds 1 to
 * the first and a migration; only one that breaks earlier programs sets the second.
 */
export const VERSION = 5
const OLDEST = 1

/** After all migrations: earlier programs then find out whether they may still use the database. */
export const SET_VERSION = `UPDATE relay_schema SET version = ${VERSION}, oldest = ${OLDEST}`

/** `rely` in ASCII: marks the file as relay's (SQLite file format, section 1.3.14). */
const APPLICATION_ID = 0x72656c79

/** Ids of deliveries that retention has removed, until `expires_at`, under the numbers that they had. */
export const REMOVED = `
CREATE INDEX delivery_delivery_id ON delivery (delivery_id);
CREATE TABLE removed (n INTEGER PRIMARY KEY, delivery_id TEXT NOT NULL, expires_at BIGINT NOT NULL);
CREATE INDEX removed_id ON removed (delivery_id);
CREATE INDEX removed_expiry ON removed (expires_at);
`

/**
 * What one of several relays may run at a time, such as the queue of a target: which relay holds it, and when that last renewed
 * it, by the database's clock. No row, or no holder: it is free. The epoch is higher each time that it is taken.
 */
export const LEASE = `
CREATE TABLE lease (name TEXT PRIMARY KEY, epoch BIGINT NOT NULL, holder TEXT, beat BIGINT NOT NULL);
`

/**
 * All that a profile keeps. Instants are milliseconds since 1970-01-01 UTC.
 *
 * Rows that belong to a delivery go with it. Indexes serve the questions that people ask: the newest deliveries of an event or
 * a repository, since a time, that failed, that wait. Most forwards succeed, so the indexes by status leave those out.
 */
export const SCHEMA = `
CREATE TABLE relay_schema (version INTEGER NOT NULL, oldest INTEGER NOT NULL);
INSERT INTO relay_schema (version, oldest) VALUES (${VERSION}, ${OLDEST});

CREATE TABLE kv (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires_at DOUBLE PRECISION);
CREATE INDEX kv_expiry ON kv (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE delivery (
  n INTEGER PRIMARY KEY,
  dedupe_key TEXT NOT NULL UNIQUE,
  received_at BIGINT NOT NULL,
  provider TEXT NOT NULL,
  event TEXT NOT NULL,
  action TEXT,
  repo TEXT,
  number BIGINT,
  ref TEXT,
  delivery_id TEXT NOT NULL,
  hook_id TEXT NOT NULL,
  verified_by TEXT NOT NULL,
  restored TEXT,
  headers TEXT NOT NULL,
  size BIGINT NOT NULL,
  duplicates BIGINT NOT NULL DEFAULT 0,
  ignored_by TEXT
);
CREATE INDEX delivery_received_at ON delivery (received_at);
CREATE INDEX delivery_event ON delivery (event, n, action);
CREATE INDEX delivery_repo ON delivery (lower(repo), n);

CREATE TABLE body (n INTEGER PRIMARY KEY REFERENCES delivery (n) ON DELETE CASCADE, bytes BLOB NOT NULL);

CREATE TABLE forward (
  n BIGINT NOT NULL REFERENCES delivery (n) ON DELETE CASCADE,
  target TEXT NOT NULL,
  position BIGINT NOT NULL,
  status TEXT NOT NULL,
  tries BIGINT NOT NULL,
  since BIGINT NOT NULL,
  reason TEXT,
  PRIMARY KEY (n, target)
);
CREATE INDEX forward_waiting ON forward (n, position, target) WHERE status = 'waiting';
CREATE INDEX forward_failed ON forward (n) WHERE status = 'failed';

CREATE TABLE attempt (
  n BIGINT NOT NULL REFERENCES delivery (n) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  target TEXT NOT NULL,
  at BIGINT NOT NULL,
  outcome TEXT NOT NULL,
  status BIGINT,
  ms DOUBLE PRECISION NOT NULL,
  answer BLOB NOT NULL,
  error TEXT,
  count BIGINT NOT NULL,
  headers TEXT,
  PRIMARY KEY (n, seq)
);
${REMOVED}${LEASE}`

/** What makes each version of the one before it, from the second on. New columns come last, as they do in {@link SCHEMA}. */
export const MIGRATIONS = [
  'ALTER TABLE delivery ADD COLUMN ignored_by TEXT',
  'ALTER TABLE attempt ADD COLUMN headers TEXT',
  REMOVED,
  LEASE,
] as const

/** What an opened database needs: its schema, the changes since an earlier version, or nothing. */
export type SchemaState = 'empty' | 'older' | 'current'

/**
 * What the database needs. It only reads, so that a process that holds the write lock does not block others from opening it.
 * @throws DatabaseFailure for the file of another program, and for a schema that this program is too old for.
 */
export function checkSchema(connection: SqliteConnection): SchemaState {
  if (connection.rows('SELECT 1 FROM sqlite_schema LIMIT 1').length === 0) return 'empty'
  const [{ id } = { id: 0 }] = connection.rows<{ id: number }>(
    'SELECT application_id AS id FROM pragma_application_id',
  )
  if (id !== APPLICATION_ID) throw new DatabaseFailure({ code: OTHER_PROGRAM, message: 'not of relay' })
  const { version, oldest } = versionOf(connection)
  if (oldest > VERSION) throw new DatabaseFailure({ code: NEWER_SCHEMA, message: 'newer schema' })
  return version < VERSION ? 'older' : 'current'
}

/** Makes or changes the schema, unless another process has done it meanwhile. @throws as {@link checkSchema} */
export function makeSchema(connection: SqliteConnection): void {
  connection.inTransaction(() => {
    const state = checkSchema(connection)
    if (state === 'empty') {
      connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
      connection.exec(SCHEMA)
    } else if (state === 'older') {
      for (const sql of MIGRATIONS.slice(versionOf(connection).version - 1)) connection.exec(sql)
      connection.exec(SET_VERSION)
    }
  })
}

/** @throws DatabaseFailure for a schema without a version. */
function versionOf(connection: SqliteConnection): { readonly version: number; readonly oldest: number } {
  const [row] = connection.rows<{ version: number; oldest: number }>(
    'SELECT version, oldest FROM relay_schema',
  )
  if (!row) throw new DatabaseFailure({ code: NEWER_SCHEMA, message: 'no schema version' })
  return row
}
