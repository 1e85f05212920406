import type { Sql } from './sql.js'

/** State of a server, for `relay doctor`. */
export interface ServerHealth {
  /** Version as the server spells it, such as `15.14 (Debian 15.14-0+deb12u1)`. */
  readonly version: string
  /** Milliseconds by which the server's clock is ahead of this machine's, accurate to half a round trip. */
  readonly ahead: number
  /** Disabled settings whose absence loses acknowledged data in a crash, or damages the data. */
  readonly unsafe: readonly string[]
  /** Rights that the user lacks, such as `DELETE on delivery`. */
  readonly missingRights: readonly string[]
  readonly isEncrypted: boolean
}

const UNSAFE = `SELECT name FROM pg_settings
  WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off' ORDER BY name`

const RIGHTS = `SELECT privilege || ' on ' || relname AS name
  FROM pg_class CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privilege
  WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND relkind = 'r' AND NOT has_table_privilege(oid, privilege)
  ORDER BY relname, privilege`

const SERVER = `SELECT current_setting('server_version') AS version,
  extract(epoch FROM clock_timestamp()) * 1000 AS now,
  coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS ssl`

/** Reads the server's state. @throws RelayError `storage` */
export async function readHealth(sql: Sql): Promise<ServerHealth> {
  const [unsafe, rights] = await Promise.all([
    sql.query<{ readonly name: string }>(UNSAFE),
    sql.query<{ readonly name: string }>(RIGHTS),
  ])
  // Sent alone over an open connection, so that its duration is the round trip.
  const before = Date.now()
  const [server] = await sql.query<{ version: string; now: number; ssl: number }>(SERVER)
  const { version = '', now = before, ssl } = server ?? {}
  return {
    version,
    ahead: now - (before + Date.now()) / 2,
    unsafe: unsafe.map(({ name }) => name),
    missingRights: rights.map(({ name }) => name),
    isEncrypted: ssl === 1,
  }
}
