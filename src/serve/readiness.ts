import { sleep, createCached, awaitWithin, isTimeout } from '../base/wait.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { type Log, silentLog } from '../base/log.js'
import type { FetchHandler } from '../http/listen.js'
import { errorResponse } from '../http/router.js'
import type { Journal } from '../journal/journal.js'
import { READY_PATH } from '../server/app.js'
import type { ReadyCheck } from '../server/parts.js'

/**
 * Time for which a result is cached: a check writes to the disk, and may be requested a thousand times a second.
 * Milliseconds.
 */
const CACHE_MS = 1000
/** Time after which storage counts as failed: load balancers wait 2 to 5 s for a response. Milliseconds. */
const LIMIT_MS = 2000
const SLOW = `storage did not answer within ${LIMIT_MS / 1000} s`
/**
 * Time between the first 503 and closing the listener: three checks of a load balancer, one a second, and some more.
 * Milliseconds.
 */
const DRAIN_MS = 5000
/**
 * Time after the last request for /ready in which a load balancer counts as watching: most ask every 2 to 10 s.
 * Milliseconds.
 */
const WATCHED_MS = 15_000

/** Readiness of the instance for deliveries. All requests but `GET /ready` wait until the instance has its profile. */
export class Readiness {
  readonly #log: Log
  readonly #opened: Promise<FetchHandler>
  #resolve: (application: FetchHandler) => void = () => {}
  #isOpen = false
  #state: 'starting' | 'started' | 'stopping' = 'starting'
  #problem: () => Promise<RelayError | undefined> = () => Promise.resolve(undefined)
  #askedAt = -Infinity

  constructor(log: Log) {
    this.#log = log
    this.#opened = new Promise((resolve) => (this.#resolve = resolve))
  }

  readonly fetch: FetchHandler = async (request, env) => {
    if (!this.#isOpen && new URL(request.url).pathname === READY_PATH)
      try {
        await this.check({ watched: true })
      } catch (error) {
        return errorResponse(error, silentLog)
      }
    return (await this.#opened)(request, env)
  }

  /** Passes all waiting and later requests to an application. Only the first call counts. */
  open(application: FetchHandler): void {
    this.#isOpen = true
    this.#resolve(application)
  }

  /**
   * Resolves if deliveries can be stored. @throws RelayError `unavailable` while relay starts or stops, `storage` while
   * a delivery could not be stored
   */
  readonly check: ReadyCheck = async ({ watched } = { watched: false }) => {
    if (watched) this.#askedAt = performance.now()
    if (this.#state !== 'started') throw new RelayError('unavailable', `relay is ${this.#state}`)
    const cause = await this.#problem()
    if (cause) throw new RelayError('storage', 'Deliveries cannot be stored', { cause, forClients: true })
  }

  /** Marks the instance as started, with the journal that is checked from now on. */
  start(journal: Pick<Journal, 'check'>): void {
    let before: RelayError | undefined
    this.#problem = createCached(CACHE_MS, async () => {
      const found = await awaitWithin(LIMIT_MS, journal.check()).then(
        () => undefined,
        (error: unknown) => (isTimeout(error) ? new RelayError('storage', SLOW) : toRelayError(error)),
      )
      if (found && !before) this.#log.warn(`/ready answers 503: ${found.message}`)
      if (before && !found) this.#log.info('/ready answers 200 again')
      before = found
      return found
    })
    this.#state = 'started'
  }

  /**
   * Marks the instance as stopping. Resolves when a load balancer has had time to notice; at once if none has asked
   * lately.
   */
  async stop(): Promise<void> {
    this.#state = 'stopping'
    if (performance.now() - this.#askedAt > WATCHED_MS) return
    this.#log.info(`/ready answers 503 for ${DRAIN_MS / 1000} s, so that a load balancer stops sending first`)
    await sleep(DRAIN_MS)
  }
}
