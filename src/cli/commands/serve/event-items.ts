import { isChannel } from '../../../base/settings.js'
import { aborted } from '../../../base/wait.js'
import { shortNames } from '../../../dispatch/routes.js'
import { Routing } from '../../../dispatch/routing.js'
import type { TargetStatus } from '../../../dispatch/target.js'
import { waitReason, waitText } from '../../../dispatch/waiting.js'
import type { RelayEvent } from '../../../events/events.js'
import type { ServeItem } from './items.js'

/** Time that the banner waits for new channels. Creating one takes about half a second. Milliseconds. */
const TUNNEL_LIMIT_MS = 3000

/** Makes items of a relay's events: adds the short names of targets, and leaves out what has no line. */
export class EventItems {
  readonly #push: (item: ServeItem) => void
  #names: ReadonlyMap<string, string>
  /** Payload URLs of tunnels by source. */
  readonly #tunnelUrls = new Map<string, string>()
  #onTunnel = (): void => {}
  /** Status of the targets, once that is known. */
  targets: () => readonly TargetStatus[] = () => []

  constructor(push: (item: ServeItem) => void, { routes }: Routing) {
    this.#push = push
    this.#names = shortNames(routes)
  }

  /** Returns the short name of a target. */
  readonly nameOf = (id: string): string =>
    this.#names.get(id) ?? this.#formerName(id) ?? shortNames([{ id }]).get(id) ?? id

  /** The name of a target that is no longer configured. */
  #formerName(id: string): string | undefined {
    return this.targets().find((target) => target.id === id)?.name
  }

  readonly onEvent = (event: RelayEvent): void => {
    if (event.type === 'settings') this.#names = shortNames(new Routing(event.settings.routes).routes)
    const item = this.#itemOf(event)
    if (item) this.#push(item)
    if (event.type !== 'tunnel') return
    const { source, url } = event.tunnel
    if (url === null) this.#tunnelUrls.delete(source)
    else this.#tunnelUrls.set(source, url)
    this.#onTunnel()
  }

  /**
   * Returns the payload URLs of `--tunnel` by source. Waits some seconds for new channels, or until the signal aborts.
   */
  async payloadUrls(
    sources: readonly string[],
    { tunnel, signal }: { readonly tunnel: string | undefined; readonly signal: AbortSignal },
  ): Promise<ReadonlyMap<string, string>> {
    const complete = new AbortController()
    this.#onTunnel = () => sources.every((source) => this.#tunnelUrls.has(source)) && complete.abort()
    this.#onTunnel()
    const ends = [signal, complete.signal, AbortSignal.timeout(TUNNEL_LIMIT_MS)]
    if (tunnel !== undefined && !isChannel(tunnel)) await Promise.race(ends.map(aborted))
    return new Map(this.#tunnelUrls)
  }

  #itemOf(event: RelayEvent): ServeItem | undefined {
    const { nameOf } = this
    switch (event.type) {
      case 'delivery': {
        const { n } = event.receipt
        const now = Date.now()
        const targets = event.receipt.targets.map((id) => {
          const target = this.targets().find((each) => each.id === id)
          // Otherwise it goes out now, or the line of the target has said that it is down.
          const isHeld = target?.state === 'up' && target.heldBy !== undefined && target.heldBy.n !== n
          const reason = isHeld ? waitReason(n, { status: 'waiting' }, target, now) : undefined
          return { id, name: nameOf(id), ...(reason && { waitsFor: waitText(reason, now) }) }
        })
        return { ...event, targets, hasRoutes: this.#names.size > 0 }
      }
      case 'attempt':
        return { ...event, name: nameOf(event.attempt.route.id) }
      case 'skipped':
        return { type: 'skipped', n: event.n, id: event.target, name: nameOf(event.target) }
      case 'target':
        return { ...event, name: event.target.name ?? nameOf(event.target.id) }
      case 'settings':
        return { type: 'settings', reloaded: event.reloaded }
      case 'listening':
      case 'tunnel':
      case 'hook':
      case 'account':
      case 'handshake':
      case 'settings refused':
        return event
      // Without a line: the list of refused requests, the log and the inspector have more details.
      case 'refused':
      case 'sign-in ended':
      case 'code used':
      case 'turn':
      case 'stale':
      case 'changed':
      case 'removed':
    }
    return undefined
  }
}
