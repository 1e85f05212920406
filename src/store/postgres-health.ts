import type { Sql } from './sql.js'

/** Connections that one relay has open: one that writes, one for the session that holds locks, and those that read. */
export const CONNECTIONS = 6

/** What `relay doctor` asks a server beyond whether it answers. */
export interface ServerHealth {
  /** As the server spells it, such as `15.14 (Debian 15.14-0+deb12u1)`. */
  readonly version: string
  /** Milliseconds by which the server's clock is ahead of this machine's; half a round trip is not known. */
  readonly ahead: number
  /** The settings without which a crash loses what was acknowledged, or damages the data, that are off. */
  readonly unsafe: readonly string[]
  /** Connections that this user can still open. */
  readonly connectionsLeft: number
  /** Rights that the user lacks, such as `DELETE on delivery`. */
  readonly missingRights: readonly string[]
  /** Whether a later version of relay can change the tables. */
  readonly isOwner: boolean
  readonly isEncrypted: boolean
}

const UNSAFE = `SELECT name FROM pg_settings
  WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off' ORDER BY name`

/** The smallest of what the server, the database and the user may have, less what is in use; a limit of -1 is none. */
const CONNECTIONS_LEFT = `SELECT least(
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
      - (SELECT sum(numbackends) FROM pg_stat_database),
    (SELECT CASE WHEN datconnlimit >= 0 THEN datconnlimit - numbackends END
      FROM pg_database JOIN pg_stat_database USING (datname) WHERE datname = current_database()),
    (SELECT CASE WHEN rolconnlimit >= 0 THEN rolconnlimit - (SELECT count(*) FROM pg_stat_activity WHERE usename = rolname) END
      FROM pg_roles WHERE rolname = current_user)
  ) AS "left"`

const RIGHTS = `SELECT privilege || ' on ' || relname AS name
  FROM pg_class CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
  WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND relkind = 'r' AND NOT has_table_privilege(oid, privilege)
  ORDER BY relname, privilege`

const SERVER = `SELECT current_setting('server_version') AS version,
  extract(epoch FROM clock_timestamp()) * 1000 AS now,
  pg_has_role((SELECT nspowner FROM pg_namespace WHERE nspname = current_schema()), 'USAGE') AS owner,
  coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS ssl`

/** @throws RelayError `storage` */
export async function readHealth(sql: Sql): Promise<ServerHealth> {
  const [unsafe, rights, [connections]] = await Promise.all([
    sql.query<{ readonly name: string }>(UNSAFE),
    sql.query<{ readonly name: string }>(RIGHTS),
    sql.query<{ readonly left: number }>(CONNECTIONS_LEFT),
  ])
  // Alone, over a connection that is open: its time is that of the round trip.
  const before = Date.now()
  const [server] = await sql.query<{ version: string; now: number; owner: number; ssl: number }>(SERVER)
  const { version = '', now = before, owner, ssl } = server ?? {}
  return {
    version,
    ahead: now - (before + Date.now()) / 2,
    unsafe: unsafe.map(({ name }) => name),
    connectionsLeft: connections?.left ?? 0,
    missingRights: rights.map(({ name }) => name),
    isOwner: owner === 1,
    isEncrypted: ssl === 1,
  }
}
