import { RelayError } from '../base/errors.js'
import { DEFAULT_TUNNEL, isChannel, isCodeHost, type Settings } from '../base/settings.js'
import { schemeOf } from '../codehost/schemes.js'
import type { Core } from '../core.js'
import { provesBody } from '../schemes/proof.js'
import type { TunnelStatus } from '../instance/protocol.js'
import type { Tunnel } from '../tunnel/tunnel.js'

/**
 * Checks that every source can use a tunnel. Each needs a channel of its own, and signatures that cover the body: any
 * reader of a channel could copy a plain token and send another body with it.
 * @param removal returns the command that removes a source; undefined for one that a flag or a file sets
 * @throws RelayError `usage` with advice
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

/** The tunnels of an instance: one channel for each source. */
export class Tunnels implements AsyncDisposable {
  readonly #core: Core
  readonly #lost: AbortSignal
  /** Open tunnels by source. */
  readonly #open = new Map<string, Tunnel>()
  /** Settles when the last update has ended: updates run one after the other. */
  #updated: Promise<void> = Promise.resolve()
  #isClosed = false

  /** @param lost aborts when the tunnels belong to another relay */
  constructor(core: Core, lost: AbortSignal) {
    this.#core = core
    this.#lost = lost
  }

  /**
   * Opens the tunnels of new sources, and closes those of removed sources. Does nothing if the settings have no tunnel.
   */
  async update(): Promise<void> {
    const { tunnel: address } = this.#core.settings
    if (address === undefined) return
    const update = async (): Promise<void> => this.#update(address)
    await (this.#updated = this.#updated.then(update))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    await this.#updated
    await Promise.all([...this.#open].map(([name, tunnel]) => this.#close(name, tunnel)))
  }

  async #update(address: string): Promise<void> {
    const { sources, intake, refusals, settings, database, log, clock, events } = this.#core
    // Loaded only if needed.
    const { Tunnel } = await import('../tunnel/tunnel.js')
    if (this.#isClosed) return
    for (const source of sources.values()) {
      const known = this.#open.get(source.name)
      if (source.scheme.challenge !== undefined && !known) log.warn(halfText(source.name))
      known?.use(source)
      const shared = { intake, refusals, maxBody: settings.maxBody, store: database.store, log, clock }
      const onStatus = (tunnel: TunnelStatus): void => events.emit({ type: 'tunnel', tunnel })
      const own = { address, lost: this.#lost, onStatus }
      if (!known) this.#open.set(source.name, new Tunnel({ ...source, ...shared, ...own }))
    }
    const gone = [...this.#open].filter(([name]) => !sources.has(name))
    await Promise.all(gone.map(([name, tunnel]) => this.#close(name, tunnel)))
  }

  /** Closes a tunnel. Resolves once everything that arrived has been handled. */
  async #close(name: string, tunnel: Tunnel): Promise<void> {
    await tunnel[Symbol.asyncDispose]()
    this.#open.delete(name)
  }
}

/** Warns about a sender that uses forms and expects a response: a smee server relays only a part of that. */
function halfText(name: string): string {
  return `${name} works only in part through --tunnel: a smee server takes its events, which are JSON; it refuses its forms, such as slash commands and buttons, and does not pass on the answer to url_verification, which ${name} asks for when an address is entered. For all of it, serve it without --tunnel at a public address`
}

/** Address that the code host sends deliveries to: the public one, unless a tunnel is set. */
export class PayloadAddress {
  /** Resolves once the address is known: for a tunnel, when it is connected for the first time. */
  readonly known: Promise<string>
  readonly #listeners = new Set<() => void>()
  #resolve: (address: string) => void = () => {}
  #wasConnected = false
  #isDown = false

  constructor({ tunnel, publicUrl }: Pick<Settings, 'tunnel' | 'publicUrl'>, url: string) {
    this.known = new Promise((resolve) => (this.#resolve = resolve))
    if (tunnel === undefined) this.#resolve(`${publicUrl ?? url}/webhook`)
  }

  /** Handles a change of a tunnel's status. */
  noticed({ source, state, url }: TunnelStatus): void {
    if (!isCodeHost(source)) return
    const isConnected = state === 'connected'
    if (isConnected && url !== null) this.#resolve(url)
    if (isConnected && this.#isDown) for (const listener of this.#listeners) listener()
    this.#wasConnected ||= isConnected
    this.#isDown = this.#wasConnected && !isConnected
  }

  /** Calls `listener` whenever deliveries can arrive again after an interruption. Returns a function that ends that. */
  onBack(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
