import type { AccountChange } from '../auth/accounts.js'
import type { ReadLiveSettings } from '../base/settings.js'
import type { AttemptEvent } from '../dispatch/lane.js'
import type { TargetStatus } from '../dispatch/target.js'
import type { JournalChange } from '../journal/journal.js'
import type { Delivery, Receipt } from '../journal/types.js'
import type { TunnelStatus } from '../instance/protocol.js'
import type { HandshakeEvent } from '../webhook/refusals.js'
import type { HookEvent } from './hook-event.js'
import type { Reloaded } from './status.js'

/** Events of a relay. Times are milliseconds since 1970-01-01 UTC. */
export type RelayEvent =
  /** The relay listens at these addresses. Always the first event. */
  | { readonly type: 'listening'; readonly url: string; readonly sandbox: string | null }
  /** A delivery was stored in the journal. Its sender gets the response next. */
  | { readonly type: 'delivery'; readonly delivery: Delivery; readonly receipt: Receipt }
  /** An attempt was stored in the journal. */
  | { readonly type: 'attempt'; readonly attempt: AttemptEvent }
  /** A person has ended what waits of an entry for this target. */
  | { readonly type: 'skipped'; readonly n: number; readonly target: string }
  /**
   * A target went down, came up, was removed from the settings, or was added again; others wait for one of its
   * deliveries, or it is not answered for long.
   */
  | { readonly type: 'target'; readonly target: TargetStatus }
  /** The state of a tunnel changed. `hub`: address of the hub whose one connection is the tunnel of all sources. */
  | { readonly type: 'tunnel'; readonly tunnel: TunnelStatus; readonly hub?: string }
  | { readonly type: 'hook'; readonly hook: HookEvent }
  /** A user signed in or out over HTTP. */
  | { readonly type: 'account'; readonly account: AccountChange }
  /** A request was refused, and added to the list of refused requests. */
  | { readonly type: 'refused' }
  /** A sender asked the address of its source whether it is the user's. */
  | { readonly type: 'handshake'; readonly handshake: HandshakeEvent }
  /** The outcome of a sign-in in a browser was stored for the waiting program. */
  | { readonly type: 'sign-in ended' }
  /** A one-time code opened the inspector. */
  | { readonly type: 'code used' }
  /** Another relay of the profile forwards from now on, or this one does. */
  | { readonly type: 'turn' }
  /** Settings were replaced. */
  | { readonly type: 'settings'; readonly settings: ReadLiveSettings; readonly reloaded: Reloaded }
  /** Changed settings could not be used. All stay as they were. */
  | { readonly type: 'settings refused'; readonly error: unknown }
  /** Another relay of the profile changed entries. Which ones is not known. */
  | { readonly type: 'stale' }
  | JournalChange

/** Receives each event. Must be cheap and must not throw, since deliveries wait for it. */
export type EventListener = (event: RelayEvent) => void

/** Announces events to the listeners that subscribed. */
export class Events {
  readonly #listeners = new Set<EventListener>()
  readonly #last: EventListener

  /** @param last gets each event after all others, since the listener of an embedding program may change the event */
  constructor(last: EventListener = () => {}) {
    this.#last = last
  }

  readonly emit: EventListener = (event) => {
    for (const listener of this.#listeners) listener(event)
    this.#last(event)
  }

  /** Calls `listener` with each event from now on, until the result is disposed of. */
  subscribe(listener: EventListener): Disposable {
    // Wrapped, so that a function that subscribes twice is called twice.
    const own: EventListener = (event) => listener(event)
    this.#listeners.add(own)
    return { [Symbol.dispose]: () => void this.#listeners.delete(own) }
  }
}
