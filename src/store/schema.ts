import { anywhere } from '../base/command-line.js'
import { RelayError } from '../base/errors.js'
import { execute, type Tx } from './sql.js'

/** The version that {@link SCHEMA} makes. Data of earlier ones, which other programs wrote, is refused. */
const FIRST_VERSION = 11

/**
 * What brings data to the next version, in the SQL that SQLite and PostgreSQL have in common: `ALTER TABLE`, a table, rows. Types are those of
 * {@link SCHEMA}. It must not depend on the program's other code, which changes.
 */
export type Migration = () => Tx<void>

/**
 * The migrations, from {@link FIRST_VERSION} on: the version of the data is how many were run. A new one is added at the end; one that was
 * released never changes. New data runs them too, so that there is one way to every version.
 */
export const MIGRATIONS: readonly Migration[] = [
  // What was counted at each write is counted when somebody looks: see journal/read.ts.
  function* () {
    yield* execute({ sql: 'ALTER TABLE removed ADD COLUMN entries BIGINT NOT NULL DEFAULT 0', values: [] })
    const gone = 'SELECT coalesce(max(n), 0) - count(*) FROM delivery'
    yield* execute({ sql: `UPDATE removed SET entries = (${gone})`, values: [] })
    yield* execute({ sql: 'DROP TABLE minute', values: [] })
  },
]

/** The version of this program's data. */
export function currentVersion(): number {
  return FIRST_VERSION + MIGRATIONS.length
}

/** What this program can do with data of a version. */
export function suits(version: number): 'current' | 'migrates' | 'earlier' | 'newer' {
  if (version > currentVersion()) return 'newer'
  if (version === currentVersion()) return 'current'
  return version >= FIRST_VERSION ? 'migrates' : 'earlier'
}

/** What happens to data of an earlier version that can be migrated. */
export interface MigrationOptions {
  /** Whether to migrate it: for a caller who has the profile for itself. */
  readonly migrate: boolean
  /** The command line that does it, for the error where this caller may not. */
  readonly startCommand: string
  /** Called before it begins, since it may take minutes. */
  readonly onSlow: (text: string) => void
}

/** Refuses it. */
export const NO_MIGRATION: MigrationOptions = {
  migrate: false,
  startCommand: anywhere('serve'),
  onSlow: () => {},
}

/** The error for data that a caller may not migrate. */
export class NotMigrated extends RelayError {
  constructor(what: string, startCommand: string) {
    super(
      'settings',
      `${what} was written by an earlier version of relay. It is unchanged. Start ${startCommand}, which brings it to this version and keeps what it holds`,
    )
  }
}

/** Brings data of a version to the next one: one transaction. */
export function* migrate(version: number): Tx<void> {
  const migration = MIGRATIONS[version - FIRST_VERSION]
  if (!migration) throw new Error(`no migration from version ${version}`)
  yield* migration()
  yield* execute({ sql: 'UPDATE relay_schema SET version = ?', values: [version + 1] })
}

/** Runs all migrations after {@link SCHEMA}, in the same transaction. */
export function* complete(): Tx<void> {
  for (let version = FIRST_VERSION; version < currentVersion(); version++) yield* migrate(version)
}

/**
 * A forward that failed, or that needed another attempt. The planners of both engines use the index `forward_failed` for a query with
 * exactly these words, or with one side of the OR.
 */
export const FAILED_ATTEMPT = `(status = 'failed' OR tries > 0)`

/**
 * All that a profile keeps, on SQLite and PostgreSQL, before any of the {@link MIGRATIONS}. Instants are milliseconds since 1970-01-01 UTC. Rows that belong to a delivery go
 * with it.
 *
 * - `delivery.key`: what makes a delivery the same as one before; see journal/write.ts.
 * - `delivery.scheme`: how the source signs: a code host's name, or the text of a scheme.
 * - `delivery.event`: with the action after a line feed where the source is a code host.
 * - `body` is a table of its own: going through deliveries without an index would read the bodies' pages too (6 to 8 times slower).
 * - `forward` is the queue of each target. Most forwards succeed, so the indexes by status leave those out.
 * - `removed`: one row: when the last of the removed entries came.
 * - `target`: how many forwards have each status, updated with each write: counting a million rows takes a second.
 * - `minute`: counts of deliveries, which the first migration drops.
 */
export const SCHEMA = `
CREATE TABLE relay_schema (version INTEGER NOT NULL);
INSERT INTO relay_schema (version) VALUES (${FIRST_VERSION});

CREATE TABLE kv (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires_at DOUBLE PRECISION);
CREATE INDEX kv_expiry ON kv (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE delivery (
  n INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  received_at BIGINT NOT NULL,
  source TEXT NOT NULL,
  scheme TEXT NOT NULL,
  verified TEXT NOT NULL,
  event TEXT NOT NULL,
  repo TEXT,
  number BIGINT,
  ref TEXT,
  delivery_id TEXT NOT NULL,
  hook_id TEXT NOT NULL,
  restored TEXT,
  headers TEXT NOT NULL,
  size BIGINT NOT NULL,
  duplicates BIGINT NOT NULL DEFAULT 0,
  ignored_by TEXT
);
CREATE INDEX delivery_received_at ON delivery (received_at, n);
CREATE INDEX delivery_event ON delivery (event, n);
CREATE INDEX delivery_repo ON delivery (lower(repo), n);
CREATE INDEX delivery_id ON delivery (delivery_id);

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
) WITHOUT ROWID;
CREATE INDEX forward_waiting ON forward (target, n) WHERE status = 'waiting';
CREATE INDEX forward_failed ON forward (n) WHERE ${FAILED_ATTEMPT};

CREATE TABLE attempt (
  n BIGINT NOT NULL REFERENCES delivery (n) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  target TEXT NOT NULL,
  at BIGINT NOT NULL,
  outcome TEXT NOT NULL,
  status BIGINT,
  ms DOUBLE PRECISION NOT NULL,
  answer BLOB NOT NULL,
  headers TEXT,
  error TEXT,
  count BIGINT NOT NULL,
  PRIMARY KEY (n, seq)
);

CREATE TABLE removed (until BIGINT NOT NULL);
INSERT INTO removed (until) VALUES (0);
CREATE TABLE minute (minute INTEGER PRIMARY KEY, received BIGINT NOT NULL, failed BIGINT NOT NULL);
CREATE TABLE target (
  target TEXT PRIMARY KEY, waiting BIGINT NOT NULL, succeeded BIGINT NOT NULL, failed BIGINT NOT NULL
);
`
