import { sleep, createCached, inTime, isTimeout } from '../base/wait.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { type Log, silentLog } from '../base/log.js'
import type { FetchHandler } from '../http/listen.js'
import { errorResponse } from '../http/router.js'
import type { Journal } from '../journal/journal.js'
import { READY_PATH, type ReadyCheck } from '../server/app.js'

/** Whether the instance can take deliveries, for whatever asks `GET /ready`. */
export interface Readiness {
  /** @throws RelayError `unavailable` while it starts or stops, `storage` while a delivery could not be stored. */
  readonly check: ReadyCheck
  /** From now on, deliveries can be stored in this journal. */
  start(journal: Pick<Journal, 'check'>): void
  /**
   * From now on, it is not ready. Resolves when a load balancer has had {@link DRAIN_MS} to notice, at once if none has asked
   * lately.
   */
  stop(): Promise<void>
}

/** Milliseconds for which an answer counts: a check writes to the disk, and may be asked for a thousand times a second. */
const CACHE_MS = 1000
/** Milliseconds after which storage counts as away: load balancers wait 2 to 5 s for an answer. */
const LIMIT_MS = 2000
/** Milliseconds between the first 503 and the end of the listener: three checks of a load balancer, one a second, and some more. */
const DRAIN_MS = 5000
/** Milliseconds after the last request for /ready in which a load balancer counts as watching: most ask every 2 to 10 s. */
const WATCHED_MS = 15_000

export function createReadiness(log: Log): Readiness {
  let state: 'starting' | 'started' | 'stopping' = 'starting'
  let problem: () => Promise<RelayError | undefined> = () => Promise.resolve(undefined)
  let askedAt = -Infinity
  return {
    async check({ watched } = { watched: false }) {
      if (watched) askedAt = performance.now()
      if (state !== 'started') throw new RelayError('unavailable', `relay is ${state}`)
      const found = await problem()
      if (found) throw new RelayError('storage', 'Deliveries cannot be stored', { cause: found })
    },
    start(journal) {
      problem = createCached(
        CACHE_MS,
        reported(() => problemOf(journal), log),
      )
      state = 'started'
    },
    async stop() {
      state = 'stopping'
      if (performance.now() - askedAt > WATCHED_MS) return
      log.info(`/ready answers 503 for ${DRAIN_MS / 1000} s, so that a load balancer stops sending first`)
      await sleep(DRAIN_MS)
    },
  }
}

/** Why a delivery could not be stored now; undefined if it could. */
async function problemOf(journal: Pick<Journal, 'check'>): Promise<RelayError | undefined> {
  try {
    await inTime(LIMIT_MS, journal.check())
    return undefined
  } catch (error) {
    return isTimeout(error)
      ? new RelayError('storage', `storage did not answer within ${LIMIT_MS / 1000} s`)
      : toRelayError(error)
  }
}

/** Logs when the problem begins and when it ends. */
function reported(
  find: () => Promise<RelayError | undefined>,
  log: Log,
): () => Promise<RelayError | undefined> {
  let before: RelayError | undefined
  return async () => {
    const found = await find()
    if (found && !before) log.warn(`/ready answers 503: ${found.message}`)
    if (before && !found) log.info('/ready answers 200 again')
    before = found
    return found
  }
}

export interface ReadinessGate {
  readonly fetch: FetchHandler
  /** Lets the waiting requests and all later ones through, to the first application that it is opened for. */
  readonly open: (application: FetchHandler) => void
}

/** Makes requests wait until this process has the profile, but for those that ask whether it is ready. */
export function createReadinessGate(ready: ReadyCheck): ReadinessGate {
  let application: FetchHandler | undefined
  let resolve: ((application: FetchHandler) => void) | undefined
  const opened = new Promise<FetchHandler>((given) => (resolve = given))
  return {
    async fetch(request, env) {
      if (!application && new URL(request.url).pathname === READY_PATH)
        try {
          await ready({ watched: true })
        } catch (error) {
          return errorResponse(error, silentLog)
        }
      return (application ?? (await opened))(request, env)
    },
    open(given) {
      application ??= given
      resolve?.(given)
    },
  }
}
