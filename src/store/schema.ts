import { anywhere } from '../base/command-line.js'
import { RelayError } from '../base/errors.js'
import { execute, type Tx } from './sql.js'

/** Version that {@link SCHEMA} makes. Data of earlier versions, written by other programs, is refused. */
const FIRST_VERSION = 11

/**
 * Migrates data to the next version, in the SQL that SQLite and PostgreSQL have in common: `ALTER TABLE`, a table,
 * rows. Types are those of {@link SCHEMA}. It must not depend on the program's other code, which changes.
 */
export type Migration = () => Tx<void>

/**
 * Migrations from {@link FIRST_VERSION} on. The version of the data is the number of migrations that were run. A new
 * one is added at the end; one that was released never changes. New data runs them too, so that there is one way to
 * every version.
 */
export const MIGRATIONS: readonly Migration[] = [
  // These counts were updated with each write, and are now computed when needed: see journal/read.ts.
  function* () {
    yield* execute({ sql: 'ALTER TABLE removed ADD COLUMN entries BIGINT NOT NULL DEFAULT 0', values: [] })
    const gone = 'SELECT coalesce(max(n), 0) - count(*) FROM delivery'
    yield* execute({ sql: `UPDATE removed SET entries = (${gone})`, values: [] })
    yield* execute({ sql: 'DROP TABLE minute', values: [] })
  },
  // A delivery that is tried again no longer holds up those behind it. Each waiting forward is in one of two indexes.
  function* () {
    yield* execute({ sql: 'ALTER TABLE forward ADD COLUMN due BIGINT NOT NULL DEFAULT 0', values: [] })
    yield* execute({ sql: 'DROP INDEX forward_waiting', values: [] })
    const tried = `UPDATE forward SET due = 1 WHERE tries > 0 AND status = 'waiting'`
    yield* execute({ sql: tried, values: [] })
    const first = `CREATE INDEX forward_first ON forward (target, n) WHERE status = 'waiting' AND due = 0`
    yield* execute({ sql: first, values: [] })
    const again = `CREATE INDEX forward_again ON forward (target, due, n) WHERE status = 'waiting' AND due > 0`
    yield* execute({ sql: again, values: [] })
    yield* execute({ sql: 'ALTER TABLE target ADD COLUMN name TEXT', values: [] })
  },
  function* () {
    yield* execute({ sql: 'ALTER TABLE delivery ADD COLUMN query TEXT', values: [] })
  },
  function* () {
    yield* execute({ sql: 'ALTER TABLE delivery ADD COLUMN kind TEXT', values: [] })
  },
]

/**
 * Conditions for a waiting forward: not tried before, or to be tried again. The planners of both engines use the indexes
 * `forward_first` and `forward_again` for queries with exactly these words.
 */
export const WAITS_FIRST = `status = 'waiting' AND due = 0`
export const WAITS_AGAIN = `status = 'waiting' AND due > 0`

/** Version of the data that this program reads and writes. */
export function currentVersion(): number {
  return FIRST_VERSION + MIGRATIONS.length
}

/** Tells if this program can use data of a version. */
export function suits(version: number): 'current' | 'migrates' | 'earlier' | 'newer' {
  if (version > currentVersion()) return 'newer'
  if (version === currentVersion()) return 'current'
  return version >= FIRST_VERSION ? 'migrates' : 'earlier'
}

/** Handling of data of an earlier version that can be migrated. */
export interface MigrationOptions {
  /** True to migrate the data. Only for a caller that owns the profile. */
  readonly migrate: boolean
  /** Command line that migrates the data, for the error of a caller that may not. */
  readonly startCommand: string
  /** Called before it begins, since it may take minutes. */
  readonly onSlow: (text: string) => void
}

/** Refuses data of an earlier version. */
export const NO_MIGRATION: MigrationOptions = {
  migrate: false,
  startCommand: anywhere('serve'),
  onSlow: () => {},
}

/** Error for data that a caller may not migrate. */
export class NotMigrated extends RelayError {
  constructor(what: string, startCommand: string) {
    super(
      'settings',
      `${what} was written by an earlier version of relay. It is unchanged. Start ${startCommand}, which brings it to this version and keeps what it holds`,
    )
  }
}

/** Migrates data to the next version, in one transaction. */
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
 * Condition for a forward that failed or needed another attempt. The planners of both engines use the index
 * `forward_failed` for a query with exactly these words, or with one side of the OR.
 */
export const FAILED_ATTEMPT = `(status = 'failed' OR tries > 0)`

/**
 * Tables of a profile on SQLite and PostgreSQL, before any of the {@link MIGRATIONS}. Times are milliseconds since
 * 1970-01-01 UTC. Rows of a delivery are removed with it.
 *
 * - `delivery.key`: equal for repetitions of a delivery; see journal/write.ts.
 * - `delivery.scheme`: how the source signs: a code host's name, or the text of a scheme.
 * - `delivery.event`: with the action after a line feed if the source is a code host.
 * - `delivery.query`, which a migration adds: the query of the address at which it arrived. Null without one.
 * - `delivery.kind`, which a migration adds: what `number` is of, where issues and pull requests have numbers of their own.
 * - `body` is a table of its own, so that a scan of deliveries does not read the bodies' pages (6 to 8 times faster).
 * - `forward` is the queue of each target. Most forwards succeed, so the indexes by status leave those out. `due`, which a
 *   migration adds, is the time before which a delivery is not tried again; 0 for one that was not tried, and only then.
 * - `target.name`, which a migration adds: the user's last name for the target.
 * - `removed`: one row with the time at which the newest removed entry was received.
 * - `target`: number of forwards by status, updated with each write, since counting a million rows takes a second.
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
