import { Disposal } from '../../src/base/disposal.js'
import type { Log } from '../../src/base/log.js'
import {
  createDispatcher,
  type Dispatcher,
  type DispatcherOptions,
  type TargetStatus,
} from '../../src/dispatch/dispatcher.js'
import type { AttemptEvent } from '../../src/dispatch/attempt.js'
import { parseExec, parseForward, type Route } from '../../src/dispatch/route.js'
import { routesFor } from '../../src/dispatch/routing.js'
import type { Receipt } from '../../src/journal/delivery.js'
import type { Journal } from '../../src/journal/journal.js'
import { openJournal } from '../../src/journal/open.js'
import type { Database } from '../../src/store/database.js'
import { openDatabase } from '../../src/store/open.js'
import { createIntake } from '../../src/webhook/intake.js'
import { type DeliveryOptions, GITHUB, githubDelivery, SECRETS } from '../helpers/delivery.js'
import { VirtualTime } from './virtual-time.js'

export interface RigOptions extends Partial<Omit<DispatcherOptions, 'journal' | 'routes'>> {
  readonly forward?: readonly string[]
  readonly exec?: readonly string[]
  /** Default: in memory. It is left open. */
  readonly database?: Database
  /** Replaces the journal for the dispatcher. */
  readonly journal?: (journal: Journal) => DispatcherOptions['journal']
  /** Default: started. */
  readonly started?: boolean
}

export interface Rig extends AsyncDisposable {
  readonly dispatcher: Dispatcher
  readonly journal: Journal
  readonly database: Database
  readonly routes: readonly Route[]
  readonly time: VirtualTime
  readonly attempts: AttemptEvent[]
  readonly states: TargetStatus[]
  readonly said: string[]
  /** Receives a delivery as the code host sends it, and forwards it. */
  receive(options?: DeliveryOptions): Promise<Receipt>
}

/** A journal, an intake and a dispatcher joined as in the whole relay, in virtual time. */
export async function createRig(options: RigOptions = {}): Promise<Rig> {
  const { forward = [], exec = [], started = true, journal: seen = (journal) => journal } = options
  await using owner = new Disposal()
  const database = options.database ?? owner.use(await openDatabase({ kind: 'memory', folder: '' }))
  const routes = [...forward.map(parseForward), ...exec.map(parseExec)]
  const journal = openJournal(database.sql, {
    targetsOf: (delivery) => routesFor(routes, [], delivery).map(({ id }) => id),
  })
  const time = new VirtualTime()
  const attempts: AttemptEvent[] = []
  const states: TargetStatus[] = []
  const said: string[] = []
  const dispatcher = owner.use(
    createDispatcher({
      concurrency: 1,
      env: { PATH: process.env['PATH'] },
      log: logTo(said),
      onAttempt: (event) => attempts.push(event),
      onTarget: (status) => states.push(status),
      time,
      ...options,
      journal: seen(journal),
      routes,
    }),
  )
  const intake = createIntake({
    provider: GITHUB,
    secrets: SECRETS,
    journal,
    clock: time.clock,
    onDelivery: (_, { n, targets }) => dispatcher.take(n, targets),
  })
  if (started) await dispatcher.start()
  const all = owner.move()
  return {
    dispatcher,
    journal,
    database,
    routes,
    time,
    attempts,
    states,
    said,
    receive: (delivery) => intake.receive(githubDelivery(delivery)),
    [Symbol.asyncDispose]: () => all[Symbol.asyncDispose](),
  }
}

function logTo(lines: string[]): Log {
  const say = (message: string): void => void lines.push(message)
  return { debug: say, info: say, warn: say, error: say }
}
