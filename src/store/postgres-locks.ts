// The advisory locks of a profile's relays, within the key space of the database.

/** The lock of what one of several relays does: forward, tunnel, keep hooks, remove old deliveries. */
export const RUN = 'run'
/** The shared lock of all relays of a profile. One that migrates the data has it alone. */
export const MEMBER = 'member'

/** The profile's lock of a name, given as a parameter: a call of one of PostgreSQL's functions. */
export function lock(call: string, parameter = 1): string {
  return `${call}(hashtextextended(current_schema() || ' ' || $${parameter}, 0))`
}

/** The condition for the rows of `pg_locks` that are such a lock which somebody has. */
export function isLock(parameter: number): string {
  return `locktype = 'advisory' AND granted AND objsubid = 1 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND ((classid::bigint << 32) | objid::bigint) = hashtextextended(current_schema() || ' ' || $${parameter}, 0)`
}

/**
 * One transaction writes to a profile at a time, whichever relay sends it, as in SQLite: what a transaction reads stays true until it is
 * committed, and numbers are given in the order of the commits.
 */
export const LOCK_WRITERS = 'SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), 0))'
