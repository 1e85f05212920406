import { EventEmitter, once } from 'node:events'
import { deadline, sleep } from '../base/wait.js'
import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { TIME_LIMITS } from '../base/seams.js'
import type { Journal, Retention } from '../journal/journal.js'
import type { Database } from '../store/open.js'

export interface MaintenanceParts {
  readonly database: Database
  readonly journal: Pick<Journal, 'sweep' | 'counts'>
  readonly retention: Omit<Retention, 'signal'>
  readonly log: Log
  /** Makes the warning while what waits makes the journal larger than it may be. */
  readonly warning: (waiting: number) => string
  /** Milliseconds between rounds. Default: a minute. */
  readonly interval?: number
}

/**
 * Part of `keepMax` that is added before a sweep. The rest of the 10 % by which the file may grow is for what is added
 * during the sweep, and for indexes.
 */
const GROWTH = 0.02
/** Fewest bytes that are added before a sweep: a sweep for a few entries costs more than it frees. */
const MIN_GROWTH = 262_144
/** Pause between two steps that shrink the file, so that a delivery does not wait for several of them. Milliseconds. */
const SHRINK_PAUSE_MS = 100

/**
 * Removes expired records and old deliveries every minute, and as soon as many were added. Shrinks the file after a
 * minute without additions.
 */
export function startMaintenance({
  database,
  journal,
  retention,
  log,
  warning,
  interval = TIME_LIMITS.sweep,
}: MaintenanceParts) {
  const stop = new AbortController()
  const { signal } = stop
  const grown = new EventEmitter()
  const limit = Math.max(retention.keepMax * GROWTH, MIN_GROWTH)
  let [total, sinceSweep] = [0, 0]
  const logged = (work: Promise<unknown>): Promise<unknown> =>
    work.catch((error: unknown) => log.error(toRelayError(error).message, error))
  const warnOfSize = sizeWarning({ database, journal, retention, log, warning })
  /** Sweeps now, and again each time that enough was added, until the interval ends. */
  const sweepForAnInterval = async (): Promise<void> => {
    const limited = deadline(interval, signal)
    do {
      sinceSweep = 0
      await logged(journal.sweep({ ...retention, signal }))
      await logged(warnOfSize())
      if (sinceSweep < limit) await once(grown, 'enough', { signal: limited }).catch(() => {})
    } while (!limited.aborted)
  }
  const shrink = async (): Promise<void> => {
    const before = total
    const isIdle = (): boolean => !signal.aborted && total === before
    while (isIdle() && (await database.sql.shrink())) await sleep(SHRINK_PAUSE_MS, { signal }).catch(() => {})
  }
  const running = (async () => {
    while (!signal.aborted) {
      await logged(database.store.sweep())
      await logged(database.rotate())
      const before = total
      await sweepForAnInterval()
      if (total === before) await logged(shrink())
    }
  })()
  return {
    /** Counts bytes that were added to the journal. */
    added(bytes: number): void {
      total += bytes
      sinceSweep += bytes
      if (sinceSweep >= limit) grown.emit('enough')
    },
    async [Symbol.asyncDispose](): Promise<void> {
      stop.abort()
      await running
    },
  }
}

/** Makes a function that warns, once, while what waits makes the journal larger than it may be: it is never removed. */
function sizeWarning({ database, journal, retention, log, warning }: MaintenanceParts): () => Promise<void> {
  let isWarned = false
  return async () => {
    const isOver = (await database.sql.usedBytes()) > retention.keepMax
    const counts = isOver ? await journal.counts() : new Map<string, never>()
    const waiting = [...counts.values()].reduce((sum, each) => sum + each.waiting, 0)
    // If none waits, a single entry is larger.
    if (waiting > 0 && !isWarned) log.warn(warning(waiting))
    isWarned = waiting > 0
  }
}
