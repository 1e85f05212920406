import { type Dispatcher, fetch as undiciFetch } from 'undici'
import type { Log } from '../../src/base/log.js'
import { openJournal } from '../../src/journal/open.js'
import type { Provider } from '../../src/providers/provider.js'
import { openDatabase } from '../../src/store/open.js'
import type { TunnelStatus } from '../../src/tunnel/state.js'
import { openTunnel, type TunnelOptions } from '../../src/tunnel/tunnel.js'
import { createIntake } from '../../src/webhook/intake.js'
import { GITHUB, SECRETS } from '../helpers/delivery.js'

export interface RigOptions extends Partial<Omit<TunnelOptions, 'address' | 'provider'>> {
  readonly provider?: Provider
}

/** A tunnel to a journal in memory, with short limits; what it said and told, and what has come. */
export async function startTunnel(address: string, { provider = GITHUB, ...options }: RigOptions = {}) {
  const database = await openDatabase({ kind: 'memory', folder: '' })
  const journal = openJournal(database)
  const said: string[] = []
  const statuses: TunnelStatus[] = []
  const waiting = new Set<() => void>()
  const changed = (): void => {
    for (const look of waiting) look()
  }
  const say = (line: string): void => {
    said.push(line)
    changed()
  }
  const log: Log = { debug: say, info: say, warn: say, error: say }
  const intake = createIntake({ provider, secrets: SECRETS, journal, clock: () => 1000, onDelivery: changed })
  const tunnel = openTunnel({
    address,
    intake,
    provider,
    secrets: SECRETS,
    store: database.store,
    maxBody: 1_048_576,
    log,
    onStatus: (status) => {
      statuses.push(status)
      changed()
    },
    delay: () => 20,
    ...options,
    limits: { tick: 5, ...options.limits },
  })
  const until = async <Found>(find: () => Found | undefined): Promise<Found> => {
    for (;;) {
      const found = find()
      if (found !== undefined) return found
      await new Promise<void>((resolve) => waiting.add(resolve))
    }
  }
  return {
    store: database.store,
    journal,
    said,
    statuses,
    /** Once so many deliveries are in the journal. */
    stored: (count: number) => until(() => (journal.count() >= count ? true : undefined)),
    says: (text: string) => until(() => said.find((line) => line.includes(text))),
    /** The first status with these fields, from `from` on. */
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

/** `fetch` by way of a dispatcher, as the network is by way of a resolver or a proxy. */
export function through(dispatcher: Dispatcher): typeof fetch {
  const call = (url: string, init?: object) => undiciFetch(url, { ...init, dispatcher })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return call as unknown as typeof fetch
}
