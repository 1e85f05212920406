import { createHash } from 'node:crypto'
import { sleep } from '../base/wait.js'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import type { Route } from '../dispatch/routes.js'
import type { Routing } from '../dispatch/routing.js'
import type { Postgres } from '../store/postgres.js'
import type { RelaySession } from '../store/session.js'

/**
 * Permission of this relay to do the work that only one relay of a profile does: it forwards, tunnels, keeps hooks and
 * removes old deliveries.
 */
export interface Turn {
  /** True if this relay certainly still has the turn. Asked right before something is sent. */
  readonly mayRun: () => boolean
  /** Aborts when another relay has the turn. */
  readonly lost: AbortSignal
  /** True if another relay serves the profile, too, and takes over at the end. @throws RelayError `storage` */
  readonly hasOthers: () => Promise<boolean>
}

/** Work of the relay that has the turn. Disposing of it ends all of it. */
export interface TurnWork extends AsyncDisposable {
  /** Starts the work. To be called once. @throws RelayError, after which it can only be disposed of */
  start(): Promise<void>
}

export interface DutiesOptions<Work extends TurnWork> {
  /** Makes the work of a turn, not yet started. */
  readonly begin: (turn: Turn) => Work
  /** Digest of the settings that all relays of the profile must share. */
  readonly routes: string
  /**
   * Called with the numbers of entries that other relays changed; undefined if any may have changed. Must not throw.
   */
  readonly onNotice: (numbers: readonly number[] | undefined) => void
  /** Called when the turn passes to this relay or to another. Must not throw. */
  readonly onTurn: () => void
  readonly log: Log
}

/** Delay before forwarding is started again, after the database did not respond. Milliseconds. */
const START_AGAIN_MS = 1000
/** Interval of reading without a notice, since a notice can be lost in a break. Milliseconds. */
const POLL_MS = 2000
const OTHER_ROUTES =
  'Another relay of this profile has other routes, ignore rules or concurrency. Give all relays of a profile the same'

/** A turn of this relay. */
interface Running<Work> {
  readonly lost: AbortController
  /** Undefined between a failed start and the next one. */
  work: Work | undefined
  /** Resolves once the work has started, or the turn is lost. */
  started: Promise<void>
}

/**
 * Starts and ends the work that only one of a profile's relays does: the one that holds a lock of the database, or the
 * only one. Disposing of it lets another relay begin.
 */
export class Duties<Work extends TurnWork> implements AsyncDisposable {
  readonly #options: DutiesOptions<Work>
  /** Undefined for a profile that only this relay uses. */
  #session: RelaySession | undefined
  #poll: NodeJS.Timeout | undefined
  #wants = false
  #running: Running<Work> | undefined
  #ended: Promise<void> = Promise.resolve()

  constructor(options: DutiesOptions<Work>) {
    this.#options = options
  }

  /** Current work of this relay. Undefined while another relay has the turn. */
  get work(): Work | undefined {
    return this.#running?.work
  }

  /** Joins the other relays of a shared profile. @throws RelayError `settings` if their routes differ; `storage` */
  async join(postgres: Postgres): Promise<void> {
    const { routes, onNotice, onTurn, log } = this.#options
    const { RelaySession } = await import('../store/session.js')
    const session = new RelaySession(postgres, routes, {
      onNotice,
      onRun: (holds) => {
        if (!holds) void this.#end()
        else if (this.#wants && !this.#running) {
          const lost = new AbortController()
          const running: Running<Work> = { lost, work: undefined, started: Promise.resolve() }
          this.#running = running
          running.started = this.#tryStart(running)
        }
        onTurn()
      },
      onAway: (error) =>
        error
          ? log.warn(`Forwarding pauses: ${error.message}`)
          : log.info('Forwarding continues: the database answers again'),
    })
    await session.start()
    this.#session = session
    try {
      await this.#refuseDifference(routes)
    } catch (error) {
      await session[Symbol.asyncDispose]()
      throw error
    }
    this.#poll = setInterval(() => this.#running && onNotice([]), POLL_MS).unref()
  }

  /** True if no other relay has the turn. */
  get isOurs(): boolean {
    return !this.#session || this.#running !== undefined
  }

  /**
   * Starts the work now, or as soon as this relay has the turn. To be called once. @throws the error of its start, if
   * no other relay can do the work
   */
  async run(): Promise<void> {
    const { begin } = this.#options
    this.#wants = true
    if (this.#session) return this.#session.want()
    const lost = new AbortController()
    const work = begin({ mayRun: () => true, lost: lost.signal, hasOthers: () => this.hasOthers() })
    const started = work.start()
    this.#running = { lost, work, started: started.catch(() => {}) }
    await started
  }

  /** True if another relay serves the profile, too. @throws RelayError `storage` */
  async hasOthers(): Promise<boolean> {
    return ((await this.#session?.others())?.count ?? 0) > 0
  }

  /**
   * Announces other routes to the relays of the profile. @throws RelayError `settings` if the routes of another relay
   * differ; `storage`
   */
  async changeRoutes(routes: string): Promise<void> {
    if (await this.hasOthers()) await this.#refuseDifference(routes)
    await this.#session?.changeRoutes(routes)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#poll)
    this.#wants = false
    await this.#end()
    await this.#session?.release()
    await this.#session?.[Symbol.asyncDispose]()
  }

  async #refuseDifference(routes: string): Promise<void> {
    if ((await this.#session?.others(routes))?.isDifferent) throw new RelayError('settings', OTHER_ROUTES)
  }

  /**
   * Starts the work once that of an earlier turn has ended. Tries again until it succeeds or the turn is lost. Does not
   * reject.
   */
  async #tryStart(running: Running<Work>): Promise<void> {
    const { begin, log } = this.#options
    const lost = running.lost.signal
    await this.#ended
    for (let failures = 0; !lost.aborted;) {
      const mayRun = (): boolean => !lost.aborted && this.#session?.holds === true
      const work = begin({ mayRun, lost, hasOthers: () => this.hasOthers() })
      running.work = work
      try {
        return await work.start()
      } catch (error) {
        if (lost.aborted) return
        running.work = undefined
        const why = toRelayError(error).message
        if (++failures === 1) log.error(`forwarding could not be started yet: ${why}`, error)
        await this.#close(work)
        await sleep(START_AGAIN_MS, { signal: lost }).catch(() => {})
      }
    }
  }

  /** Ends the turn. Resolves once all its work has ended. Does not reject. */
  #end(): Promise<void> {
    const last = this.#running
    this.#running = undefined
    if (this.#session) last?.lost.abort(new RelayError('unavailable', 'Another relay forwards now'))
    const finish = async (before: Promise<void>): Promise<void> => {
      await before
      await last?.started
      if (last?.work) await this.#close(last.work)
    }
    return (this.#ended = finish(this.#ended))
  }

  /** Disposes of work and logs a failure. Does not reject. */
  async #close(work: Work): Promise<void> {
    try {
      await work[Symbol.asyncDispose]()
    } catch (error) {
      this.#options.log.error(toRelayError(error).message, error)
    }
  }
}

/**
 * Computes a digest of the settings that all relays of a profile must share: targets with their options, ignored events
 * and concurrency. Hashed, since routes hold passwords.
 */
export function digestOf({ routes, ignore }: Routing, { concurrency }: Settings): string {
  // The profile's own routes are of all of them, a moment after a change.
  const each = routes.filter(({ ofProfile }) => !ofProfile).map(routeDigestText)
  const text = JSON.stringify([[...new Set(each)], ignore.map((match) => match.text), concurrency])
  return createHash('sha256').update(text).digest('hex')
}

/** Everything that decides how a route's deliveries are sent, but the file of certificates: each machine has its own. */
function routeDigestText({ id, name, headers = {}, timeout, ...options }: Route): string {
  const { ordered = false, concurrency, verify = true, reply } = options
  const sortedHeaders = Object.entries(headers).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return JSON.stringify([id, name, ordered, concurrency, String(timeout), sortedHeaders, verify, reply])
}
