import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { DEFAULT_TUNNEL, isChannel, isCodeHost, type Settings } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import { schemeOf } from '../codehost/schemes.js'
import type { TunnelStatus } from '../instance/protocol.js'
import type { RelayParts } from '../relay.js'
import { provesBody } from '../schemes/proof.js'

/** What the sources of deliveries need. */
export interface SourceParts {
  readonly relay: RelayParts
  readonly settings: Settings
  readonly address: PayloadAddress
  readonly onTunnel: (status: TunnelStatus) => void
  readonly clock: Clock
  readonly log: Log
  /** Once it aborts, the sources belong to another relay. */
  readonly lost: AbortSignal
}

/**
 * Whether the sources can have a tunnel: each needs a channel of its own, and signatures of its bodies. Any reader of a channel could copy a
 * plain token, and put another body under it.
 * @param removal the command that removes a source; undefined for one that a flag or a file sets
 * @throws RelayError `usage` that says what to do
 */
export function checkTunnel(
  { tunnel, sources = [] }: Pick<Settings, 'tunnel' | 'sources'>,
  removal: (name: string) => string | undefined = () => undefined,
): void {
  if (tunnel === undefined) return
  for (const { name, scheme: text, secrets } of sources) {
    const scheme = schemeOf(text)
    const all = [secrets.current, ...(secrets.previous ? [secrets.previous] : [])]
    if (all.every((secret) => provesBody(secret, scheme))) continue
    const signs = scheme.proofs.some(({ algorithm }) => algorithm !== 'token')
    const instead = signs ? `Set a signing token there (whsec_…) and here, or serve` : 'Serve'
    const remove = removal(name)
    const ending = remove === undefined ? '' : `, or remove it here: ${remove}`
    throw new RelayError(
      'usage',
      `--tunnel cannot be used with the source ${name}: its deliveries do not prove their body, and anyone can read and write a channel. ${instead} it without --tunnel, with a profile of its own${ending}`,
    )
  }
  const [first] = sources
  if (first && isChannel(tunnel))
    throw new RelayError(
      'usage',
      `--tunnel names one channel, which only the code host can use. For ${first.name}, which needs a channel of its own, name the server: --tunnel ${new URL(tunnel).origin}, or --tunnel alone for ${DEFAULT_TUNNEL}`,
    )
}

/** Receives through tunnels too, each source's through a channel of its own. Loaded only here. */
export async function startTunnels(
  { relay, settings, address: payloadAddress, lost, log, clock, onTunnel }: SourceParts,
  address: string,
): Promise<AsyncDisposable> {
  const { Tunnel } = await import('../tunnel/tunnel.js')
  const { intake, refusals, sources } = relay
  const { store } = relay.database
  const { maxBody } = settings
  const onStatus = (status: TunnelStatus): void => {
    const { source } = status
    onTunnel(status)
    if (isCodeHost(source)) payloadAddress.noticed(status)
  }
  const shared = { address, intake, refusals, store, lost, maxBody, log, clock, onStatus }
  const tunnels = [...sources.values()].map((source) => {
    if (source.scheme.challenge !== undefined) log.warn(halfText(source.name))
    return new Tunnel({ ...source, ...shared })
  })
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(tunnels.map((tunnel) => tunnel[Symbol.asyncDispose]()))
    },
  }
}

/** What of a sender that asks for an answer, and sends forms, a smee server passes on. */
function halfText(name: string): string {
  return `${name} works only in part through --tunnel: a smee server takes its events, which are JSON; it refuses its forms, such as slash commands and buttons, and does not pass on the answer to url_verification, which ${name} asks for when an address is entered. For all of it, serve it without --tunnel at a public address`
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
