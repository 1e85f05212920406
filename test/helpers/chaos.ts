import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { githubDelivery } from './delivery.js'
import type { PostgresServer } from './postgres.js'
import { type ServiceRelay, startServiceRelay } from './service.js'
import { type TargetServer, valuesOf } from './target.js'

const INSTANCE = 'instance:'

/** What a relay of a service has to survive. After each it runs, or is started, again. */
export const INJURIES = {
  /** It is gone at once, and the kernel closes its connections. */
  killed: async (fleet, i) => {
    await fleet.relays[i]?.program.stop('SIGKILL')
    await fleet.start(i)
  },
  /** It stands still, and the kernel keeps its connections. */
  stopped: async (fleet, i) => {
    const { child } = fleet.at(i).program
    child.kill('SIGSTOP')
    await sleep(fleet.standstill)
    child.kill('SIGCONT')
  },
  /** The server ends all of its connections. */
  disconnected: async (fleet, i) => {
    const name = `relay ${fleet.holders[i]}`
    await fleet.server.run(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '${name}'`,
    )
  },
  /** It ends properly. */
  ended: async (fleet, i) => {
    const { code } = await fleet.at(i).program.stop('SIGTERM')
    if (code !== 0) throw new Error(`relay ${i} ended with ${code}`)
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
  readonly server: PostgresServer
  readonly relays: ServiceRelay[] = []
  /** The names by which the database knows them. */
  readonly holders: string[] = []
  readonly standstill: number
  readonly #options: FleetOptions

  constructor(server: PostgresServer, options: FleetOptions) {
    this.server = server
    this.#options = options
    this.standstill = options.standstill ?? 20_000
  }

  static async start(server: PostgresServer, options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(server, options)
    for (let i = 0; i < options.size; i++) await fleet.start(i)
    return fleet
  }

  at(i: number): ServiceRelay {
    const relay = this.relays[i]
    if (!relay) throw new Error(`there is no relay ${i}`)
    return relay
  }

  /** Starts a relay, or another one in its place. */
  async start(i: number): Promise<void> {
    const { flags, ports } = this.#options
    const port = ports?.[i]
    const own = port === undefined ? flags : [...flags, '--port', String(port)]
    // One that was silent for a while may join again meanwhile.
    const before = new Set([...(await this.#instances()), ...this.holders])
    this.relays[i] = await startServiceRelay(this.server, own)
    const added = (await this.#instances()).filter((holder) => !before.has(holder))
    if (added.length !== 1) throw new Error(`${added.length} relays have joined`)
    this.holders[i] = String(added[0])
  }

  /** The names of the relays that serve the profile, or did when they ended. */
  async #instances(): Promise<readonly string[]> {
    const { rows } = await this.server
      .run('SELECT name FROM relay_default.lease')
      // Before the first has made it.
      .catch(() => ({ rows: [] }))
    return rows.map(({ name }) => String(name)).filter((name) => name.startsWith(INSTANCE))
  }

  async injure(i: number, injury: Injury): Promise<void> {
    await INJURIES[injury](this, i)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { program } of this.relays) program.child.kill('SIGCONT')
    await Promise.all(this.relays.map((relay) => relay[Symbol.asyncDispose]()))
  }
}

/** Senders that post until each of their deliveries is acknowledged, as a code host's user would by redelivering. */
export interface Senders {
  /** The ids that were answered 200. */
  readonly acknowledged: ReadonlySet<string>
  /** How many answers there were of each status; 0: none. */
  readonly statuses: ReadonlyMap<number, number>
  /** Resolves once so many more are acknowledged. */
  more(count: number): Promise<void>
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

export function startSenders({ count, url, pause = 0 }: SenderOptions): Senders {
  const acknowledged = new Set<string>()
  const statuses = new Map<number, number>()
  const waiting = new Set<() => void>()
  const stop = new AbortController()
  const send = async (id: string): Promise<void> => {
    for (;;) {
      const status = await postOnce(`${url()}/webhook`, id)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (status === 200) break
      await sleep(RETRY_PAUSE)
    }
    acknowledged.add(id)
    for (const look of waiting) look()
  }
  const running = Array.from({ length: count }, async (_, sender) => {
    for (let i = 0; !stop.signal.aborted; i++) {
      await send(`${sender}-${i}`)
      await sleep(pause)
    }
  })
  return {
    acknowledged,
    statuses,
    async more(wanted) {
      const enough = acknowledged.size + wanted
      await new Promise<void>((resolve) => {
        const look = (): void => {
          if (acknowledged.size < enough) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
      })
    },
    async stop() {
      stop.abort()
      await Promise.all(running)
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
export async function outcomeOf(
  server: PostgresServer,
  acknowledged: ReadonlySet<string>,
  targets: readonly TargetServer[],
): Promise<Outcome> {
  await nothingWaits(server)
  const { rows } = await server.run('SELECT n, delivery_id FROM relay_default.delivery ORDER BY n')
  const stored = rows.map(({ delivery_id: id }) => String(id))
  const numbers = new Map(stored.map((id, i) => [id, i]))
  return {
    lost: [...acknowledged].filter((id) => !numbers.has(id)),
    twice: stored.filter((id, i) => numbers.get(id) !== i),
    targets: targets.map((target) => targetOutcome(idsOf(target), numbers)),
  }
}

/** The ids of the deliveries that a target got, in order. */
export function idsOf({ received }: TargetServer): readonly string[] {
  return received.flatMap((handed) => valuesOf(handed, 'X-GitHub-Delivery'))
}

/** Resolves once no forward waits. */
export async function nothingWaits(server: PostgresServer): Promise<void> {
  const client = await server.connect()
  try {
    for (;;) {
      const { rows } = await client.query(
        `SELECT count(*)::int AS count FROM relay_default.forward WHERE status = 'waiting'`,
      )
      if (rows[0]?.count === 0) return
      await sleep(RETRY_PAUSE)
    }
  } finally {
    await client.end()
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
