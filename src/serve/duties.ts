import { createHash } from 'node:crypto'
import { sleep } from '../base/wait.js'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import type { Routing } from '../dispatch/routes.js'
import type { Postgres } from '../store/postgres.js'
import type { RelaySession } from '../store/session.js'

/** Whether this relay may act, while it forwards, tunnels, keeps hooks and removes old deliveries. */
export interface Turn {
  /** Whether it certainly still has the turn: asked right before something is sent. */
  readonly mayRun: () => boolean
  /** Aborts when another relay has the turn. */
  readonly lost: AbortSignal
}

/** What the relay that has the turn does. Disposing of it ends all of it. */
export interface TurnWork extends AsyncDisposable {
  /** To be called once. @throws RelayError, after which it can only be disposed of */
  start(): Promise<void>
}

export interface DutiesOptions<Work extends TurnWork> {
  /** Makes the work of a turn, which does nothing until it is started. */
  readonly begin: (turn: Turn) => Work
  /** A digest of what all relays of the profile need alike. */
  readonly routes: string
  /** Called with the numbers of entries that other relays have changed; undefined: any may have changed. Must not throw. */
  readonly onNotice: (numbers: readonly number[] | undefined) => void
  /** Called when this relay has the turn, and when another has it. Must not throw. */
  readonly onTurn: () => void
  readonly log: Log
}

/** After forwarding could not be started, because the database did not answer. Milliseconds. */
const START_AGAIN_MS = 1000
/** While nothing is notified: a notice can be lost in a break. Milliseconds. */
const POLL_MS = 2000
const OTHER_ROUTES =
  'Another relay of this profile has other routes, ignore rules or concurrency. Give all relays of a profile the same'

/** A turn of this relay. */
interface Running<Work> {
  readonly lost: AbortController
  /** Undefined between a start that failed and the next one. */
  work: Work | undefined
  /** Resolves once the work has started, or the turn is lost. */
  started: Promise<void>
}

/** What one of a profile's relays does: the one that holds a lock of the database, or the only one. Disposing of it lets another begin. */
export class Duties<Work extends TurnWork> implements AsyncDisposable {
  readonly #options: DutiesOptions<Work>
  /** Undefined for a profile that is this relay's alone. */
  #session: RelaySession | undefined
  #poll: NodeJS.Timeout | undefined
  #wants = false
  #running: Running<Work> | undefined
  #ended: Promise<void> = Promise.resolve()

  constructor(options: DutiesOptions<Work>) {
    this.#options = options
  }

  /** What this relay does now; undefined while another relay has the turn. */
  get work(): Work | undefined {
    return this.#running?.work
  }

  /** Joins the other relays of a shared profile. @throws RelayError `settings` when they have other routes; `storage` */
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

  /** Whether this relay does it. */
  get isOurs(): boolean {
    return !this.#session || this.#running !== undefined
  }

  /** Starts the work now, or whenever this relay has the turn. To be called once. @throws the error of its start, where no other relay can be */
  async run(): Promise<void> {
    const { begin } = this.#options
    this.#wants = true
    if (this.#session) return this.#session.want()
    const lost = new AbortController()
    const work = begin({ mayRun: () => true, lost: lost.signal })
    const started = work.start()
    this.#running = { lost, work, started: started.catch(() => {}) }
    await started
  }

  /** Whether another relay serves the profile, too. @throws RelayError `storage` */
  async hasOthers(): Promise<boolean> {
    return ((await this.#session?.others())?.count ?? 0) > 0
  }

  /** Lets the relays of the profile agree on other routes. @throws RelayError `settings` when others have other ones; `storage` */
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

  /** Starts once the work of an earlier turn has ended; tries again until it succeeds or the turn is lost. Does not reject. */
  async #tryStart(running: Running<Work>): Promise<void> {
    const { begin, log } = this.#options
    const lost = running.lost.signal
    await this.#ended
    for (let failures = 0; !lost.aborted;) {
      const work = begin({ mayRun: () => !lost.aborted && this.#session?.holds === true, lost })
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

  /** Resolves once all has ended. Does not reject. */
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

  /** Does not reject. */
  async #close(work: Work): Promise<void> {
    try {
      await work[Symbol.asyncDispose]()
    } catch (error) {
      this.#options.log.error(toRelayError(error).message, error)
    }
  }
}

/** What all relays of a profile need alike: where a delivery goes, and in which order. A digest, since routes hold passwords. */
export function digestOf(
  { routes, ignore }: Pick<Routing, 'routes' | 'ignore'>,
  { concurrency }: Pick<Settings, 'concurrency'>,
): string {
  const ids = [...new Set(routes.map(({ id }) => id))]
  const text = JSON.stringify([ids, ignore.map((match) => match.text), concurrency])
  return createHash('sha256').update(text).digest('hex')
}
