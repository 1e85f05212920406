import { deadline, sleep } from '../base/abort.js'
import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { LIMITS } from '../base/seams.js'
import type { Settings } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import type { Journal } from '../journal/journal.js'
import type { Database } from '../store/database.js'
import type { AgeClock } from './age-clock.js'
import { Growth } from './growth.js'

export interface MaintenanceParts {
  readonly database: Database
  readonly journal: Pick<Journal, 'sweep'>
  readonly retention: Pick<Settings, 'keep' | 'keepMax'>
  readonly clock: Clock
  readonly ages: AgeClock
  /** Once it aborts, the store belongs to another process. */
  readonly lost: AbortSignal
  readonly log: Log
  /** Milliseconds between rounds. */
  readonly interval?: number
}

export interface Maintenance extends AsyncDisposable {
  /** Counts bytes that were added to the journal; see `growth.ts`. */
  added(bytes: number): void
}

/** Rounds between saves of the age clock: after a crash it misses up to an hour in which relay ran. */
const SAVE_EVERY = 60
/**
 * The journal is swept when this part of `keepMax` was added. The rest of the 10 % by which the file may be larger is for what
 * arrives during a sweep, and for what these bytes do not count, such as indexes.
 */
const GROWTH = 0.02
/** Bytes to add before a sweep, at least: a sweep for a few entries costs more than it frees. */
const MIN_GROWTH = 262_144
/** Between two steps that shrink the file, in milliseconds, so that a delivery does not wait for several of them. */
const SHRINK_PAUSE_MS = 100

/**
 * Removes expired records and old deliveries: every minute, and the deliveries also when many were added. Shrinks the file after
 * a minute in which none was. Saves the age clock.
 */
export function startMaintenance(parts: MaintenanceParts): Maintenance {
  const { database, ages, lost, log } = parts
  const stop = new AbortController()
  const { signal } = stop
  const growth = new Growth(Math.max(parts.retention.keepMax * GROWTH, MIN_GROWTH))
  const logged = async (work: () => unknown): Promise<void> => {
    try {
      await work()
    } catch (error) {
      log.error(toRelayError(error).message, error)
    }
  }
  const save = (): Promise<void> => logged(() => (lost.aborted ? undefined : ages.save()))
  const stopped = (async () => {
    for (let round = 0; !signal.aborted; round++) {
      if (round % SAVE_EVERY === 0) await save()
      // The first round reports a keychain that cannot be used.
      await logged(() => database.store.sweep())
      const hasGrown = await sweepForAnInterval(parts, growth, logged, signal)
      if (!hasGrown) await logged(() => shrink(database, growth, signal))
    }
  })()
  return {
    added: (bytes) => growth.add(bytes),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await stopped
      await save()
    },
  }
}

/** Sweeps the journal now, and again whenever it has grown. Resolves after the interval to whether it has. */
async function sweepForAnInterval(
  { journal, retention, clock, ages, interval = LIMITS.sweep }: MaintenanceParts,
  growth: Growth,
  logged: (work: () => unknown) => Promise<void>,
  signal: AbortSignal,
): Promise<boolean> {
  const limited = deadline(interval, signal)
  const before = growth.total
  do {
    growth.reset()
    await logged(() => journal.sweep({ ...retention, now: ages.now(), wall: clock(), signal }))
    await growth.reached(limited)
  } while (!limited.aborted)
  return growth.total > before
}

/** Gives free space in the file back to the file system, until deliveries arrive. */
async function shrink({ sql }: Database, growth: Growth, signal: AbortSignal): Promise<void> {
  const before = growth.total
  while (!signal.aborted && growth.total === before && (await sql.shrink()))
    await sleep(SHRINK_PAUSE_MS, { signal }).catch(() => {})
}
