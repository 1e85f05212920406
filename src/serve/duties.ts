import { createHash } from 'node:crypto'
import { sleep } from '../base/wait.js'
import { Disposal } from '../base/lifetime.js'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import type { Routing } from '../dispatch/routes.js'
import type { Postgres } from '../store/postgres.js'

/** Whether this relay may act, while it forwards, tunnels, keeps hooks and removes old deliveries. */
export interface Turn {
  /** Whether it certainly still has the turn: asked right before something is sent. */
  readonly mayRun: () => boolean
  /** Aborts when another relay has the turn. */
  readonly lost: AbortSignal
}

/** What one of the relays of a profile does. Disposing of it ends that, and lets another relay begin. */
export interface Duties extends AsyncDisposable {
  /** Starts the work now, if no other relay can do it; otherwise whenever this one has the turn. To be called once. */
  run(start: (turn: Turn) => Promise<AsyncDisposable>): Promise<void>
  /** Whether this relay does it. */
  readonly isOurs: boolean
  /** Whether another relay serves the profile, too. @throws RelayError `storage` */
  hasOthers(): Promise<boolean>
  /** Lets the relays of the profile agree on other routes. @throws RelayError `settings` when others have other ones; `storage` */
  changeRoutes(routes: string): Promise<void>
}

/** A profile that is this relay's alone. */
export function ownDuties(): Duties {
  const closing = new Disposal()
  const never = new AbortController()
  return {
    isOurs: true,
    async run(start) {
      closing.use(await start({ mayRun: () => true, lost: never.signal }))
    },
    hasOthers: async () => false,
    changeRoutes: async () => {},
    [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
  }
}

export interface SharedDutiesOptions {
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

/**
 * A profile of several relays: the one that holds a lock of the database has the turn.
 * @throws RelayError `settings` when the others have other routes; `storage`
 */
export async function sharedDuties(
  postgres: Postgres,
  { routes, onNotice, onTurn, log }: SharedDutiesOptions,
): Promise<Duties> {
  const { Session } = await import('../store/session.js')
  const session = new Session(postgres, routes, {
    onNotice,
    onRun(holds) {
      if (holds) work.start()
      else void work.end()
      onTurn()
    },
    onAway: (error) =>
      error
        ? log.warn(`Forwarding pauses: ${error.message}`)
        : log.info('Forwarding continues: the database answers again'),
  })
  const work = createWork(() => session.holds, log)
  await session.start()
  const refuseDifference = async (which: string): Promise<void> => {
    if ((await session.others(which)).isDifferent) throw new RelayError('settings', OTHER_ROUTES)
  }
  try {
    await refuseDifference(routes)
  } catch (error) {
    await session[Symbol.asyncDispose]()
    throw error
  }
  const poll = setInterval(() => work.isRunning() && onNotice([]), POLL_MS).unref()
  return {
    get isOurs() {
      return work.isRunning()
    },
    async run(start) {
      work.set(start)
      session.want()
    },
    hasOthers: async () => (await session.others()).count > 0,
    async changeRoutes(next) {
      const { count } = await session.others()
      if (count > 0) await refuseDifference(next)
      await session.changeRoutes(next)
    },
    async [Symbol.asyncDispose]() {
      clearInterval(poll)
      work.set(undefined)
      await work.end()
      await session.release()
      await session[Symbol.asyncDispose]()
    },
  }
}

const OTHER_ROUTES =
  'Another relay of this profile has other routes, ignore rules or concurrency. Give all relays of a profile the same'

type Start = (turn: Turn) => Promise<AsyncDisposable>

/** The work of the relay that has the turn. It starts only once its work of an earlier turn has ended. */
interface Work {
  readonly isRunning: () => boolean
  /** What `start` starts; undefined: nothing more. */
  set(start: Start | undefined): void
  start(): void
  /** Resolves once all has ended. Does not reject. */
  end(): Promise<void>
}

function createWork(holds: () => boolean, log: Log): Work {
  interface Run {
    readonly lost: AbortController
    readonly begun: Promise<AsyncDisposable | undefined>
  }
  let begin: Start | undefined
  let run: Run | undefined
  let ended: Promise<void> = Promise.resolve()
  /** Begins after what came before; tries again until it succeeds or the turn is lost. */
  const begun = async (
    start: Start,
    { signal: lost }: AbortController,
  ): Promise<AsyncDisposable | undefined> => {
    await ended
    for (let failures = 0; !lost.aborted;) {
      try {
        return await start({ mayRun: () => !lost.aborted && holds(), lost })
      } catch (error) {
        if (lost.aborted) break
        const why = toRelayError(error).message
        if (++failures === 1) log.error(`forwarding could not be started yet: ${why}`, error)
        await sleep(START_AGAIN_MS, { signal: lost }).catch(() => {})
      }
    }
    return undefined
  }
  const finish = async (before: Promise<void>, last: Run): Promise<void> => {
    await before
    try {
      await (await last.begun)?.[Symbol.asyncDispose]()
    } catch (error) {
      log.error(toRelayError(error).message, error)
    }
  }
  return {
    isRunning: () => run !== undefined,
    set(start) {
      begin = start
    },
    start() {
      if (!begin || run) return
      const lost = new AbortController()
      run = { lost, begun: begun(begin, lost) }
    },
    end() {
      const last = run
      if (!last) return ended
      run = undefined
      last.lost.abort(new RelayError('unavailable', 'Another relay forwards now'))
      ended = finish(ended, last)
      return ended
    },
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
