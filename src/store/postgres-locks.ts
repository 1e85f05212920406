// Advisory locks of a profile's relays, within the key space of the database.

/** Lock for the duties that one of several relays has: forward, tunnel, keep hooks, remove old deliveries. */
export const RUN = 'run'
/** Lock that all relays of a profile share. A relay that migrates the data holds it exclusively. */
export const MEMBER = 'member'

/** SQL call of a lock function of PostgreSQL. The lock's name, a parameter, is scoped to the profile. */
export function lock(call: string, parameter = 1): string {
  return `${call}(hashtextextended(current_schema() || ' ' || $${parameter}, 0))`
}

/** SQL condition for the rows of `pg_locks` with such a lock that is held. */
export function isLock(parameter: number): string {
  return `locktype = 'advisory' AND granted AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND ((classid::bigint << 32) | objid::bigint) = hashtextextended(current_schema() || ' ' || $${parameter}, 0)`
}

/**
 * Serializes the writing transactions of a profile's relays, as in SQLite: what a transaction has read stays true until
 * it commits, and numbers follow the order of the commits.
 */
export const LOCK_WRITERS = 'SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), 0))'
