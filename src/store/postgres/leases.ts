import { type LeaseRow, type Leases, SILENCE_MS } from '../leases.js'
import type { Sql } from '../sql.js'
import { type ControlConnection, LEASES } from './control.js'

/** How the connections of a relay are called: by this, another one finds them. */
export function applicationName(holder: string): string {
  return `relay ${holder}`
}

/** The database's clock, in milliseconds, also within a transaction that had to wait. */
const CLOCK = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

const BEAT = `WITH renewed AS (UPDATE lease SET beat = ${CLOCK} WHERE holder = $1 RETURNING name)
  SELECT lease.name, epoch::float8 AS epoch, holder, (${CLOCK} - beat)::float8 AS silent, renewed.name IS NOT NULL AS held
  FROM lease LEFT JOIN renewed ON renewed.name = lease.name`

/** Epochs are given in one sequence, so that they also say which of two relays came first. */
const CLAIM = `INSERT INTO lease (name, epoch, holder, beat)
  VALUES (?, (SELECT coalesce(max(epoch), 0) + 1 FROM lease), ?, ${CLOCK})
  ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, holder = excluded.holder, beat = excluded.beat
  WHERE lease.holder IS NULL OR lease.beat < excluded.beat - ${SILENCE_MS}
  RETURNING name, epoch`

const FENCE = 'SELECT 1 FROM lease WHERE name = ? AND holder = ? AND epoch = ?'

const RELEASE = `WITH released AS (UPDATE lease SET holder = NULL WHERE holder = $1 AND name = ANY ($2::text[]) RETURNING name)
  SELECT pg_notify(current_schema(), $1 || ' ${LEASES}') FROM released LIMIT 1`

const FORGET = `DELETE FROM lease WHERE name = ANY ($2::text[])
  AND (holder IS NULL OR holder = $1 OR beat < ${CLOCK} - ${SILENCE_MS})`

const DISCONNECT = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = $1 AND pid <> pg_backend_pid()`

/** The leases of a profile. They are taken under the lock of all writers, and renewed without it. */
export function createLeases(
  sql: Pick<Sql, 'transaction'>,
  control: ControlConnection,
  holder: string,
): Leases {
  return {
    holder,
    listen: (listener) => control.listen(listener),
    beat: () => control.rows<LeaseRow>(BEAT, [holder]),
    async claim(names) {
      if (names.length === 0) return new Map()
      const rows = await sql.transaction(names.map((name) => ({ sql: CLAIM, values: [name, holder] })))
      return new Map((rows ?? []).flat().map(({ name, epoch }) => [String(name), Number(epoch)]))
    },
    fence: (name, epoch) => ({ sql: FENCE, values: [name, holder, epoch], required: true }),
    async release(names) {
      await control.rows(RELEASE, [holder, names])
    },
    async forget(names) {
      await control.rows(FORGET, [holder, names])
    },
    async disconnect(other) {
      await control.rows(DISCONNECT, [applicationName(other)])
    },
    [Symbol.asyncDispose]: () => control[Symbol.asyncDispose](),
  }
}
