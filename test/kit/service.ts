import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Closing } from './closing.js'
import { githubDelivery } from './delivery.js'
import type { Env } from './folder.js'
import { linesOf } from './journal.js'
import type { Database } from './postgres.js'
import { type Receiver, valuesOf } from './receiver.js'
import { type Running, start } from './run.js'

/** One of the relays of a service: the built program, as a process of its own. */
export interface ServiceRelay extends AsyncDisposable {
  readonly program: Running
  readonly url: string
}

/** Starts another relay of the service that has this database. */
export async function serviceRelay(
  database: Pick<Database, 'env'>,
  flags: readonly string[] = [],
  env: Env = {},
): Promise<ServiceRelay> {
  const argv = ['serve', '--port', '0', '--json', ...flags]
  await using starting = new Closing()
  const program = starting.use(start(argv, { env: { ...database.env, ...env }, built: true }))
  const url = await program.url()
  const closing = starting.move()
  return { program, url, [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose]() }
}

/** What a relay of a service has to survive. After each it runs, or is started, again. */
export const INJURIES = {
  /** It is gone at once, and the kernel closes its connections. */
  killed: async (fleet, i) => {
    await fleet.at(i).program.stop('SIGKILL')
    await fleet.start(i)
  },
  /** It stands still, and the kernel keeps its connections. */
  stopped: async (fleet, i) => {
    const { program } = fleet.at(i)
    program.kill('SIGSTOP')
    await sleep(fleet.standstill)
    program.kill('SIGCONT')
  },
  /** The server ends all of its connections. */
  disconnected: async (fleet, i) => {
    await fleet.database.run(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = '${fleet.nameOf(i)}'`,
    )
  },
  /** It ends properly. */
  ended: async (fleet, i) => {
    const { code, err } = await fleet.at(i).program.stop('SIGTERM')
    if (code !== 0) throw new Error(`relay ${i} ended with ${code}:\n${err}`)
    await fleet.start(i)
  },
} as const satisfies Record<string, (fleet: Fleet, i: number) => Promise<void>>

export type Injury = keyof typeof INJURIES

export interface FleetOptions {
  readonly size: number
  readonly flags: readonly string[]
  /** The ports of the relays, where a load balancer must know them. Default: any. */
  readonly ports?: readonly number[]
  /** How long a relay stands still, in milliseconds. Default: 20 s. */
  readonly standstill?: number
}

/** Relays of one service, each of which can be injured. */
export class Fleet implements AsyncDisposable {
  readonly database: Database
  readonly relays: ServiceRelay[] = []
  readonly standstill: number
  readonly #options: FleetOptions
  /** The names by which the database knows them. */
  readonly #names: string[] = []

  constructor(database: Database, options: FleetOptions) {
    this.database = database
    this.#options = options
    this.standstill = options.standstill ?? 20_000
  }

  at(i: number): ServiceRelay {
    const relay = this.relays[i]
    if (!relay) throw new Error(`there is no relay ${i}`)
    return relay
  }

  /** The name that a relay's connections have. */
  nameOf(i: number): string {
    const name = this.#names[i]
    if (name === undefined) throw new Error(`there is no relay ${i}`)
    return name
  }

  /** Starts a relay, or another one in its place. */
  async start(i: number): Promise<void> {
    const { flags, ports } = this.#options
    const port = ports?.[i]
    const own = port === undefined ? flags : [...flags, '--port', String(port)]
    // One that was silent for a while may connect again meanwhile.
    const before = new Set([...(await this.#connected()), ...this.#names])
    this.relays[i] = await serviceRelay(this.database, own)
    const added = (await this.#connected()).filter((name) => !before.has(name))
    const [name] = added
    if (name === undefined || added.length > 1) throw new Error(`these have connected: ${added.join(', ')}`)
    this.#names[i] = name
  }

  /** The names of the relays that have connections. */
  async #connected(): Promise<readonly string[]> {
    const { rows } = await this.database.run(
      `SELECT DISTINCT application_name AS name FROM pg_stat_activity
       WHERE datname = current_database() AND application_name LIKE 'relay %'`,
    )
    return rows.map(({ name }) => String(name))
  }

  async injure(i: number, injury: Injury): Promise<void> {
    await INJURIES[injury](this, i)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.relays.map((relay) => relay[Symbol.asyncDispose]()))
  }
}

/** Starts the relays one after the other, each once the one before listens. */
export async function fleet(database: Database, options: FleetOptions): Promise<Fleet> {
  await using starting = new Closing()
  const relays = starting.use(new Fleet(database, options))
  for (let i = 0; i < options.size; i++) await relays.start(i)
  starting.move()
  return relays
}

/** Senders that post until each of their deliveries is acknowledged, as a code host's user would by redelivering. */
export interface Senders extends AsyncDisposable {
  /** The ids that were answered 200. */
  readonly acknowledged: ReadonlySet<string>
  /** How many answers there were of each status; 0: none. */
  readonly statuses: ReadonlyMap<number, number>
  /** How long each answer took, in milliseconds. */
  readonly took: readonly number[]
  /** Resolves once so many more are acknowledged. @throws Error with the statuses of all answers, after two minutes. */
  more(count: number, within?: number): Promise<void>
  /** Resolves when each has had its last delivery acknowledged. */
  stop(): Promise<void>
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

export function senders({ count, url, pause = 0 }: SenderOptions): Senders {
  const acknowledged = new Set<string>()
  const statuses = new Map<number, number>()
  const took: number[] = []
  const waiting = new Set<() => void>()
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
        for (const look of waiting) look()
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
    acknowledged,
    statuses,
    took,
    async more(wanted, within = 120_000) {
      const enough = acknowledged.size + wanted
      await new Promise<void>((resolve, reject) => {
        const fail = (): void => {
          waiting.delete(look)
          const seen = `${enough - acknowledged.size} of ${wanted} are missing; statuses: ${[...statuses].join(' ')}`
          reject(new Error(seen))
        }
        const timer = setTimeout(fail, within)
        const look = (): void => {
          if (acknowledged.size < enough) return
          clearTimeout(timer)
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
      })
    },
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
  const { headers, body } = githubDelivery({ id, body: JSON.stringify({ id }) })
  const lines = [['Host', new URL(url).host], ...headers, ['Content-Length', String(body.byteLength)]].flat()
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(ANSWER_LIMIT)
    const outgoing = request(url, { method: 'POST', headers: lines, agent: false, signal })
    outgoing
      .on('error', () => resolve(0))
      .on('response', (answer) => {
        answer
          .on('error', () => resolve(0))
          .on('end', () => resolve(answer.statusCode ?? 0))
          .resume()
      })
    outgoing.end(body)
  })
}

/** What became of the deliveries of a service. */
export interface Outcome {
  /** Acknowledged, but not in the journal. */
  readonly lost: readonly string[]
  /** In the journal more than once. */
  readonly twice: readonly string[]
  /** Of each target, in the order given. */
  readonly targets: readonly TargetOutcome[]
}

export interface TargetOutcome {
  /** In the journal, but never received. */
  readonly missing: readonly string[]
  /** Received for the first time after a later one. */
  readonly disordered: readonly string[]
  /** How many were received again. */
  readonly repeats: number
}

/** Looks once nothing waits any more. */
export async function outcome(
  database: Pick<Database, 'env'>,
  acknowledged: ReadonlySet<string>,
  targets: readonly Receiver[],
): Promise<Outcome> {
  await nothingWaits(database)
  const stored = (await linesOf(database)).map(({ delivery }) => String(delivery))
  const numbers = new Map(stored.map((id, i) => [id, i]))
  return {
    lost: [...acknowledged].filter((id) => !numbers.has(id)),
    twice: stored.filter((id, i) => numbers.get(id) !== i),
    targets: targets.map((target) => targetOutcome(idsOf(target), numbers)),
  }
}

/** The ids of the deliveries that a target got, in order. */
export function idsOf({ received }: Pick<Receiver, 'received'>): readonly string[] {
  return received.flatMap((request) => valuesOf(request, 'X-GitHub-Delivery'))
}

/** Resolves once no delivery waits for a target. @throws Error with what waits, after a minute. */
export async function nothingWaits(database: Pick<Database, 'env'>, within = 60_000): Promise<void> {
  for (const until = performance.now() + within; ; await sleep(RETRY_PAUSE)) {
    const waiting = await linesOf(database, '--status', 'waiting')
    if (waiting.length === 0) return
    if (performance.now() > until)
      throw new Error(`${waiting.length} deliveries wait: ${JSON.stringify(waiting.slice(0, 5))}`)
  }
}

function targetOutcome(received: readonly string[], numbers: ReadonlyMap<string, number>): TargetOutcome {
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
    missing: [...numbers.keys()].filter((id) => !seen.has(id)),
    disordered,
    repeats: received.length - seen.size,
  }
}
