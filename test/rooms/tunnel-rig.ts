import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import { anywhere } from '../../src/base/command-line.js'
import type { Log } from '../../src/base/log.js'
import { Secret } from '../../src/base/secret.js'
import type { Delivery } from '../../src/journal/types.js'
import { openDatabase } from '../../src/store/open.js'
import type { TunnelStatus } from '../../src/instance/protocol.js'
import { Tunnel, type TunnelOptions } from '../../src/tunnel/tunnel.js'
import { createIntake } from '../../src/webhook/intake.js'
import { Refusals } from '../../src/webhook/refusals.js'
import { createSource, type Source } from '../../src/senders/source.js'
import { Changes } from '../kit/changes.js'
import { SECRET } from '../kit/delivery.js'

export interface RigOptions extends Partial<Omit<TunnelOptions, keyof Source>> {
  /** Whose deliveries come through it. Default: GitHub's. */
  readonly source?: Source
  /** Of the journal. */
  readonly append?: (delivery: Delivery) => Promise<void>
}

/** A source of that scheme and name. */
export function sourceOf(scheme: string, secret: string, name = scheme): Source {
  return createSource({ name, scheme, secrets: { current: new Secret(secret) } })
}

/** A tunnel with short limits, and all that comes of it. */
export async function tunnel(
  address: string,
  { append, source, clock = Date.now, ...options }: RigOptions = {},
) {
  const { store } = await openDatabase({ kind: 'memory', folder: '' })
  const [logged, statuses, stored]: [string[], TunnelStatus[], Delivery[]] = [[], [], []]
  const changes = new Changes(() => JSON.stringify({ logged, statuses, stored: stored.length }))
  const write = (line: string): void => {
    logged.push(line)
    changes.changed()
  }
  const log: Log = { debug: write, info: write, warn: write, error: write }
  const sender = source ?? sourceOf('github', SECRET)
  const journal = {
    async append(delivery: Delivery) {
      await append?.(delivery)
      stored.push(delivery)
      changes.changed()
      return { n: stored.length, duplicate: false, targets: [] }
    },
  }
  const intake = createIntake({
    journal,
    clock,
    plan: () => ({ targets: [], ignoredBy: undefined, onDuplicate: 'if-failed' }),
  })
  const { maxBody = 1_048_576 } = options
  const refusals = new Refusals({
    command: anywhere,
    sources: new Map([[sender.name, sender]]),
    maxBody,
    log,
    clock,
  })
  const opened = new Tunnel({
    ...sender,
    address,
    intake,
    refusals,
    store,
    maxBody,
    log,
    clock,
    onStatus(status) {
      statuses.push(status)
      changes.changed()
    },
    ...options,
    limits: { tick: 5, retry: 20, ...options.limits },
  })
  const find = (fields: Partial<TunnelStatus>, from: number): TunnelStatus | undefined =>
    statuses.slice(from).find((status) => isDeepStrictEqual({ ...status, ...fields }, status))
  return {
    logged,
    statuses,
    refused: refusals.list,
    stored,
    numbers: () => stored.map(({ body }): unknown => JSON.parse(Buffer.from(body).toString()).n),
    has: (count: number) => changes.until(() => stored.length >= count, `${count} deliveries`),
    async says(text: string): Promise<string> {
      await changes.until(() => logged.some((line) => line.includes(text)), text)
      return logged.find((line) => line.includes(text)) ?? ''
    },
    /** A status with these fields, after the first `from` statuses. */
    async status(fields: Partial<TunnelStatus>, from = 0): Promise<TunnelStatus> {
      await changes.until(() => find(fields, from) !== undefined, JSON.stringify(fields))
      return find(fields, from) ?? expect.fail()
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

/** The same once it works: what its server is sent from now on reaches it. */
export async function working(address: string, options?: RigOptions) {
  const rig = await tunnel(address, options)
  await rig.status({ roundTrip: 'ok' }).catch(async (error: unknown) => {
    await rig[Symbol.asyncDispose]()
    throw error
  })
  return rig
}
