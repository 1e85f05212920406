import { RelayError } from '../base/errors.js'
import { DEFAULT_TUNNEL, isChannel, type Settings, type SourceSettings } from '../base/settings.js'
import { shownSource } from '../base/source-names.js'
import type { Source } from '../senders/source.js'
import { senderOf } from '../senders/senders.js'
import type { Core } from '../core.js'
import type { TunnelStatus } from '../instance/protocol.js'
import type { StoreReader } from '../store/kv.js'
import type { HubTunnel } from '../tunnel/hub-tunnel.js'
import type { Tunnel } from '../tunnel/tunnel.js'
import type { Answers } from './hub-messages.js'

/**
 * Checks that every source can use a tunnel. A hub is for all of them. At a smee server, each needs a channel of its own, and signatures that cover the body: any
 * reader of a channel could copy a plain token and send another body with it.
 * @param store of the profile, if it has data: it knows a hub
 * @param removal returns the command that removes a source; undefined for one that a flag or a file sets
 * @throws RelayError `usage` with advice; `storage`
 */
export async function checkTunnel(
  { tunnel, hubToken, sources = [], codeHost }: Pick<Settings, 'tunnel' | 'hubToken' | 'sources'> & WithHost,
  store: StoreReader | undefined,
  removal: (name: string) => string | undefined = () => undefined,
): Promise<void> {
  if (tunnel === undefined || (sources.length === 0 && !codeHost)) return
  if ((await hubOf({ tunnel, hubToken }, store)) !== undefined) return
  if (codeHost) checkHost(codeHost)
  for (const { name, scheme: text, secrets } of sources) {
    const sender = senderOf(text)
    const all = [secrets.current, ...(secrets.previous ? [secrets.previous] : [])]
    if (all.every((secret) => sender.coverage(secret) === 'body')) continue
    const instead =
      sender.hasSigningSecret && sender.coverage() === 'sender'
        ? `Set a signing token there (whsec_…) and here, or serve`
        : 'Serve'
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

/** Returns the address of the hub that the tunnel uses. Undefined for another tunnel, or none. @throws RelayError `storage` */
export async function hubOf(
  settings: Pick<Settings, 'tunnel' | 'hubToken'>,
  store: StoreReader | undefined,
): Promise<string | undefined> {
  const { tunnel } = settings
  if (tunnel === undefined) return undefined
  // Loaded only if needed.
  const { isHubTunnel } = await import('../tunnel/hub-tunnel.js')
  return (await isHubTunnel(settings, store)) ? new URL(tunnel).origin : undefined
}

/** The code host, whose secret is known once the profile's data are open. */
interface WithHost {
  readonly codeHost?: SourceSettings | undefined
}

function checkHost({ scheme, secrets }: SourceSettings): void {
  const { current, previous = current } = secrets
  const sender = senderOf(scheme)
  if ([current, previous].every((secret) => sender.coverage(secret) === 'body')) return
  throw new RelayError(
    'usage',
    '--tunnel cannot be used with a secret token of the code host: its deliveries do not prove their body, and anyone can read and write a channel. Set RELAY_WEBHOOK_SECRET to a signing token (whsec_…), or serve without --tunnel',
  )
}

/** The tunnels of an instance: one channel for each source, or one of a hub for all. */
export class Tunnels implements AsyncDisposable {
  readonly #core: Core
  readonly #lost: AbortSignal
  readonly #answers: Answers
  /** Open tunnels by source. */
  readonly #open = new Map<string, Tunnel>()
  /** The tunnel of all sources, if it is one of a hub. */
  #hub: HubTunnel | undefined
  /** Settles when the last update has ended: updates run one after the other. */
  #updated: Promise<void> = Promise.resolve()
  #isClosed = false

  /** @param lost aborts when the tunnels belong to another relay */
  constructor(core: Core, lost: AbortSignal, answers: Answers) {
    this.#core = core
    this.#answers = answers
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
    await this.#hub?.[Symbol.asyncDispose]()
    await Promise.all([...this.#open].map(([name, tunnel]) => this.#close(name, tunnel)))
  }

  async #update(address: string): Promise<void> {
    const { sources, intake, refusals, settings, database, log, clock, events } = this.#core
    if (this.#hub) return this.#hub.update()
    if ((await hubOf(settings, database.store)) !== undefined) {
      const { openHubTunnel } = await import('./hub-messages.js')
      if (!this.#isClosed)
        this.#hub = openHubTunnel(this.#core, { address, lost: this.#lost, answers: this.#answers })
      return
    }
    const { Tunnel } = await import('../tunnel/tunnel.js')
    if (this.#isClosed) return
    for (const source of sources.values()) {
      const known = this.#open.get(source.name)
      if (source.sender.handshakes.length > 0 && !known) log.warn(halfText(source))
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

/** Warns about a sender that expects a response, or uses forms: a smee server relays only a part of that. */
function halfText({ name, sender }: Source): string {
  const forms = sender.sendsJson ? '' : '; it refuses its forms, such as slash commands and buttons'
  const asked = sender.handshakes.join(' and ')
  return `${name} works only in part through --tunnel: a smee server takes its events, which are JSON${forms}, and does not pass on the answer to ${asked}, which ${name} asks for when an address is entered. For all of it, serve it without --tunnel at a public address`
}

/** Address that the code host sends deliveries to: the public one, unless a tunnel is set. */
export class PayloadAddress {
  /** Resolves once the address is known: for a tunnel, when it is connected for the first time. */
  readonly known: Promise<string>
  readonly #listeners = new Set<() => void>()
  #resolve: (address: string) => void = () => {}
  #wasConnected = false
  #isDown = false

  constructor({ tunnel, publicUrl }: Settings, url: string) {
    this.known = new Promise((resolve) => (this.#resolve = resolve))
    if (tunnel === undefined) this.#resolve(`${publicUrl ?? url}/webhook`)
  }

  /** Handles a change of a tunnel's status. */
  noticed({ source, state, url }: TunnelStatus): void {
    if (shownSource(source) !== undefined) return
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
