import { z } from 'zod'
import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import type { Relay } from '../relay.js'
import type { Store } from '../store/kv.js'
import type { TunnelStatus } from '../tunnel/tunnel.js'

/** What the sources of deliveries need. */
export interface SourceParts {
  readonly relay: Relay
  readonly settings: Settings
  readonly address: PayloadAddress
  readonly onTunnel: (status: TunnelStatus) => void
  readonly clock: Clock
  readonly log: Log
  /** Once it aborts, the sources belong to another relay. */
  readonly lost: AbortSignal
}

/**
 * Receives deliveries through a tunnel's channel too. The tunnel's status is stored for other commands. The tunnel is loaded only
 * here.
 */
export async function startTunnel(
  { relay, settings, address: payloadAddress, lost, log, clock, onTunnel }: SourceParts,
  address: string,
): Promise<AsyncDisposable> {
  const { Tunnel } = await import('../tunnel/tunnel.js')
  const { intake, refusals, host } = relay
  const { store } = relay.database
  const { webhookSecrets: secrets, maxBody } = settings
  let written = Promise.resolve()
  const writeAfter = async (before: Promise<void>, change: () => Promise<unknown>): Promise<void> => {
    await before
    if (!lost.aborted) await change().catch((error: unknown) => log.error(toRelayError(error).message, error))
  }
  /** One after the other. */
  const write = (change: () => Promise<unknown>): void => void (written = writeAfter(written, change))
  const { name: source, webhook: scheme } = host
  const parts = { address, source, scheme, secrets, intake, refusals, store, lost, maxBody, log, clock }
  const tunnel = new Tunnel({
    ...parts,
    onStatus(status) {
      onTunnel(status)
      payloadAddress.noticed(status)
      write(() => store.put(KEY, { v: 1, pid: process.pid, status: { ...status } }))
    },
  })
  return {
    async [Symbol.asyncDispose]() {
      await tunnel[Symbol.asyncDispose]()
      write(() => store.delete(KEY))
      await written
    },
  }
}

const KEY = 'tunnel'
const record = z.object({
  v: z.literal(1),
  pid: z.int(),
  status: z.custom<TunnelStatus>((value) => typeof value === 'object' && value !== null),
})

/** Status of that process's tunnel, as it was stored; undefined if it has none. @throws RelayError `storage` */
export async function readTunnel(store: Store, pid: number): Promise<TunnelStatus | undefined> {
  const saved = record.safeParse(await store.get(KEY)).data
  return saved?.pid === pid ? saved.status : undefined
}

/** The address that the code host sends deliveries to: the public one, unless a tunnel is set. */
export class PayloadAddress {
  /** Resolves once it is known: the tunnel's when it was connected for the first time. */
  readonly known: Promise<string>
  readonly #listeners = new Set<() => void>()
  #resolve: (address: string) => void = () => {}
  #wasConnected = false
  #isDown = false

  constructor({ tunnel, publicUrl }: Pick<Settings, 'tunnel' | 'publicUrl'>, url: string) {
    this.known = new Promise((resolve) => (this.#resolve = resolve))
    if (tunnel === undefined) this.#resolve(`${publicUrl ?? url}/webhook`)
  }

  /** To be called with each change of the tunnel. */
  noticed({ state, url }: TunnelStatus): void {
    const isConnected = state === 'connected'
    if (isConnected && url !== null) this.#resolve(url)
    if (isConnected && this.#isDown) for (const listener of this.#listeners) listener()
    this.#wasConnected ||= isConnected
    this.#isDown = this.#wasConnected && !isConnected
  }

  /** Calls `listener` whenever deliveries can come again after they could not. Returns a function that ends it. */
  onBack(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
