import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Log } from '../../src/base/log.js'
import { Journal } from '../../src/journal/journal.js'
import { sendThrough } from '../../src/net/agent.js'
import type { OutboundResponse, SendOnce } from '../../src/net/send-once.js'
import type { Provider } from '../../src/providers/provider.js'
import { openDatabase } from '../../src/store/open.js'
import type { TunnelStatus } from '../../src/tunnel/state.js'
import type { TunnelOptions } from '../../src/tunnel/options.js'
import { openTunnel } from '../../src/tunnel/tunnel.js'
import { createIntake } from '../../src/webhook/intake.js'
import { createRefusals } from '../../src/webhook/refusals.js'
import { GITHUB, SECRETS } from '../helpers/delivery.js'
import { countOf, nowhere } from '../helpers/journal.js'

export interface RigOptions extends Partial<Omit<TunnelOptions, 'address' | 'provider'>> {
  readonly provider?: Provider
}

/** A tunnel to a journal in memory, with short limits. Records log lines and statuses. */
export async function startTunnel(address: string, { provider = GITHUB, ...options }: RigOptions = {}) {
  const database = await openDatabase({ kind: 'memory', folder: '' })
  const journal = new Journal(database.sql)
  const logged: string[] = []
  const statuses: TunnelStatus[] = []
  const listeners = new Set<() => void>()
  const changed = (): void => {
    for (const listener of listeners) listener()
  }
  const write = (line: string): void => {
    logged.push(line)
    changed()
  }
  const log: Log = { debug: write, info: write, warn: write, error: write }
  const intake = createIntake({
    provider,
    secrets: SECRETS,
    journal,
    plan: nowhere,
    clock: () => 1000,
    onDelivery: changed,
  })
  const { maxBody = 1_048_576 } = options
  const parts = { secrets: SECRETS, scheme: provider.webhook, maxBody, clock: () => 1000 }
  const refusals = createRefusals({ ...parts, log })
  const tunnel = openTunnel({
    address,
    intake,
    refusals,
    provider,
    secrets: SECRETS,
    store: database.store,
    maxBody,
    log,
    onStatus: (status) => {
      statuses.push(status)
      changed()
    },
    delay: () => 20,
    ...options,
    limits: { tick: 5, ...options.limits },
  })
  const until = async <Found>(find: () => Found | undefined | Promise<Found | undefined>): Promise<Found> => {
    for (;;) {
      // Before it looks, so that no change is missed.
      const changed = new Promise<void>((resolve) => listeners.add(resolve))
      const found = await find()
      if (found !== undefined) return found
      await changed
    }
  }
  return {
    store: database.store,
    journal,
    refused: refusals.list,
    logged,
    statuses,
    /** Waits until this many deliveries are in the journal. */
    stored: (count: number) => until(async () => ((await countOf(journal)) >= count ? true : undefined)),
    /** Waits for a log line that contains this text. */
    logLine: (text: string) => until(() => logged.find((line) => line.includes(text))),
    /** Waits for a status with these fields. Skips the first `from` statuses. */
    status: (fields: Partial<TunnelStatus>, from = 0) =>
      until(() =>
        statuses
          .slice(from)
          .find((status) =>
            Object.entries(fields).every(([name, value]) => Reflect.get(status, name) === value),
          ),
      ),
    async [Symbol.asyncDispose]() {
      await tunnel[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** Sends through an agent with a resolver, a certificate or a proxy of its own. */
export function through(agent: Dispatcher): SendOnce {
  return async (url, { method, headers, body = null, signal }) => {
    const response = await sendThrough(agent, new URL(url), { method, headers, body }, { signal })
    return { ...response, discard: () => void response.body.on('error', () => {}).destroy() }
  }
}

/** An answer without a body. */
export function emptyResponse(status = 200): OutboundResponse {
  return { status, header: () => undefined, body: Readable.from([]), discard: () => {} }
}
