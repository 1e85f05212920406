import { setTimeout as sleep } from 'node:timers/promises'
import { Changes } from './changes.js'
import { Closing } from './closing.js'
import { githubDelivery, post } from './delivery.js'
import { linesOf } from './journal.js'
import type { Database } from './postgres.js'
import { type Receiver, valuesOf } from './receiver.js'
import { type Running, start } from './run.js'
import { LIMIT_MS } from './limit.js'

/** One of the relays of a service: the built program, as a process of its own. */
export interface ServiceRelay extends AsyncDisposable {
  readonly program: Running
  readonly url: string
}

/** Starts another relay of the service that has this database. */
export async function serviceRelay(
  { env }: Pick<Database, 'env'>,
  flags: readonly string[],
): Promise<ServiceRelay> {
  const program = start(['serve', '--port', '0', '--json', ...flags], { env, built: true })
  const url = await program.url()
  return { program, url, [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() }
}

/** What a relay of a service has to survive: gone at once; standing still, while the kernel keeps its connections; ended properly. */
export type Injury = 'killed' | 'stopped' | 'ended'

export interface FleetOptions {
  readonly size: number
  readonly flags: readonly string[]
  /** The ports of the relays, which the load balancer knows. */
  readonly ports: readonly number[]
  /** How long a relay stands still, in milliseconds. Default: 20 s. */
  readonly standstill?: number
}

/** Relays of one service, each of which can be injured. */
export class Fleet implements AsyncDisposable {
  readonly relays: ServiceRelay[] = []
  readonly #database: Pick<Database, 'env'>
  readonly #options: FleetOptions

  constructor(database: Pick<Database, 'env'>, options: FleetOptions) {
    this.#database = database
    this.#options = options
  }

  at(i: number): ServiceRelay {
    const relay = this.relays[i]
    if (!relay) throw new Error(`there is no relay ${i}`)
    return relay
  }

  /** Starts a relay, or another one in its place. */
  async start(i: number): Promise<void> {
    const { flags, ports } = this.#options
    this.relays[i] = await serviceRelay(this.#database, [...flags, '--port', String(ports[i])])
  }

  /** Afterwards the relay runs, or another one in its place. */
  async injure(i: number, injury: Injury): Promise<void> {
    const { program } = this.at(i)
    if (injury === 'stopped') {
      program.kill('SIGSTOP')
      await sleep(this.#options.standstill ?? 20_000)
      program.kill('SIGCONT')
      return
    }
    const { code, err } = await program.stop(injury === 'killed' ? 'SIGKILL' : 'SIGTERM')
    if (injury === 'ended' && code !== 0) throw new Error(`relay ${i} ended with ${code}:\n${err}`)
    await this.start(i)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.relays.map((relay) => relay[Symbol.asyncDispose]()))
  }
}

/** Starts the relays one after the other, each once the one before listens. */
export async function fleet(database: Pick<Database, 'env'>, options: FleetOptions): Promise<Fleet> {
  await using starting = new Closing()
  const relays = starting.use(new Fleet(database, options))
  for (let i = 0; i < options.size; i++) await relays.start(i)
  starting.move()
  return relays
}

export interface SenderOptions {
  readonly count: number
  /** Where the next request goes. */
  readonly url: () => string
  /** Milliseconds between two deliveries of a sender. Default: 0. */
  readonly pause?: number
}

/** A relay that stands still does not answer: the sender tries elsewhere after this. Milliseconds. */
const ANSWER_LIMIT = 6000
/** After a failure, in milliseconds, so that what is down is not flooded. */
const RETRY_PAUSE = 50

/** Senders that post until each of their deliveries is acknowledged, as a code host's user would by redelivering. */
export function senders({ count, url, pause = 0 }: SenderOptions) {
  const acknowledged = new Set<string>()
  const statuses = new Map<number, number>()
  const took: number[] = []
  const changes = new Changes(() => `${acknowledged.size}; statuses: ${[...statuses].join(' ')}`)
  const stopping = new AbortController()
  const leaving = new AbortController()
  const send = async (id: string): Promise<void> => {
    while (!leaving.signal.aborted) {
      const began = performance.now()
      const status = await postOnce(`${url()}/webhook`, id)
      took.push(performance.now() - began)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (status === 200) {
        acknowledged.add(id)
        changes.changed()
        return
      }
      await sleep(RETRY_PAUSE)
    }
  }
  const running = Array.from({ length: count }, async (_, sender) => {
    for (let i = 0; !stopping.signal.aborted; i++) {
      await send(`${sender}-${i}`)
      await sleep(pause)
    }
  })
  const stop = async (): Promise<void> => {
    stopping.abort()
    await Promise.all(running)
  }
  return {
    /** The ids that were answered 200. */
    acknowledged: acknowledged as ReadonlySet<string>,
    /** How many answers there were of each status; 0: none. */
    statuses: statuses as ReadonlyMap<number, number>,
    /** How long each answer took, in milliseconds. */
    took: took as readonly number[],
    /** Resolves once so many more are acknowledged. @throws Error with the statuses of all answers, after two minutes. */
    more(wanted: number, within = 2 * LIMIT_MS): Promise<void> {
      const enough = acknowledged.size + wanted
      return changes.until(() => acknowledged.size >= enough, `${enough} acknowledged`, within)
    },
    /** Resolves when each has had its last delivery acknowledged. */
    stop,
    async [Symbol.asyncDispose]() {
      // Of a test that failed: nothing may ever be acknowledged.
      leaving.abort()
      await stop()
    },
  }
}

/** The status of the answer; 0 where there is none. */
async function postOnce(url: string, id: string): Promise<number> {
  const delivery = githubDelivery({ id, body: JSON.stringify({ id }) })
  try {
    return (await post(url, delivery, false, AbortSignal.timeout(ANSWER_LIMIT))).status
  } catch {
    return 0
  }
}

/** What became of the deliveries of a service, once nothing waits any more. */
export async function outcome(
  database: Pick<Database, 'env'>,
  acknowledged: ReadonlySet<string>,
  targets: readonly Receiver[],
) {
  await nothingWaits(database)
  const stored = (await linesOf(database)).map(({ delivery }) => String(delivery))
  const numbers = new Map(stored.map((id, i) => [id, i]))
  return {
    /** Acknowledged, but not in the journal. */
    lost: [...acknowledged].filter((id) => !numbers.has(id)),
    /** In the journal more than once. */
    twice: stored.filter((id, i) => numbers.get(id) !== i),
    targets: targets.map((target) => targetOutcome(idsOf(target), numbers)),
  }
}

/** The ids of the deliveries that a target got, in order. */
export function idsOf({ received }: Pick<Receiver, 'received'>): readonly string[] {
  return received.flatMap((request) => valuesOf(request, 'X-GitHub-Delivery'))
}

/** Resolves once no delivery waits for a target. @throws Error with what waits, after a minute. */
export async function nothingWaits(database: Pick<Database, 'env'>, within = 4 * LIMIT_MS): Promise<void> {
  for (const until = performance.now() + within; ; await sleep(RETRY_PAUSE)) {
    const waiting = await linesOf(database, '--status', 'waiting')
    if (waiting.length === 0) return
    if (performance.now() > until)
      throw new Error(`${waiting.length} deliveries wait: ${JSON.stringify(waiting.slice(0, 5))}`)
  }
}

function targetOutcome(received: readonly string[], numbers: ReadonlyMap<string, number>) {
  const seen = new Set<string>()
  const disordered: string[] = []
  let latest = -1
  for (const id of received) {
    const n = numbers.get(id) ?? -1
    if (!seen.has(id) && n < latest) disordered.push(id)
    seen.add(id)
    latest = Math.max(latest, n)
  }
  return {
    /** In the journal, but never received. */
    missing: [...numbers.keys()].filter((id) => !seen.has(id)),
    /** Received for the first time after a later one. */
    disordered,
    /** How many were received again. */
    repeats: received.length - seen.size,
  }
}
