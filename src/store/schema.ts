import type { SqliteConnection } from './sqlite.js'
import { DatabaseFailure, NEWER_SCHEMA, OTHER_PROGRAM } from './storage-error.js'

/**
 * The version of {@link SCHEMA}, and the oldest version of it that a program may know to work with this one. A change adds 1 to
 * the first and a migration; only one that breaks earlier programs sets the second.
 */
export const VERSION = 1
const OLDEST = 1

/** `rely` in ASCII: marks the file as relay's (SQLite file format, section 1.3.14). */
const APPLICATION_ID = 0x72656c79

/**
 * All that a profile keeps. Instants are milliseconds since 1970-01-01 UTC.
 *
 * Rows that belong to a delivery go with it. Indexes serve the questions that people ask: the newest deliveries of an event or
 * a repository, since a time, that failed, that wait. Most forwards succeed, so the indexes by status leave those out.
 */
const SCHEMA = `
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
  duplicates BIGINT NOT NULL DEFAULT 0
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
  PRIMARY KEY (n, seq)
);
`

/**
 * Whether the database is empty. It only reads, so that a process that holds the write lock does not block others from opening it.
 * @throws DatabaseFailure for the file of another program, and for a schema that this program is too old for.
 */
export function checkSchema(connection: SqliteConnection): boolean {
  if (connection.rows('SELECT 1 FROM sqlite_schema LIMIT 1').length === 0) return true
  const [{ id } = { id: 0 }] = connection.rows<{ id: number }>(
    'SELECT application_id AS id FROM pragma_application_id',
  )
  if (id !== APPLICATION_ID) throw new DatabaseFailure({ code: OTHER_PROGRAM, message: 'not of relay' })
  const [row] = connection.rows<{ oldest: number }>('SELECT oldest FROM relay_schema')
  if (!row || row.oldest > VERSION) throw new DatabaseFailure({ code: NEWER_SCHEMA, message: 'newer schema' })
  return false
}

/** Makes the schema in an empty database, unless another process has made it meanwhile. @throws as {@link checkSchema} */
export function makeSchema(connection: SqliteConnection): void {
  connection.inTransaction(() => {
    if (!checkSchema(connection)) return
    connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    connection.exec(SCHEMA)
  })
}
