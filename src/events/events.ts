import type { AccountChange } from '../auth/accounts.js'
import type { ReadLiveSettings } from '../base/settings.js'
import type { AttemptEvent } from '../dispatch/dispatcher.js'
import type { TargetStatus } from '../dispatch/target.js'
import type { JournalChange } from '../journal/journal.js'
import type { Delivery, Receipt } from '../journal/types.js'
import type { TunnelStatus } from '../instance/protocol.js'
import type { HookEvent } from './hook-event.js'
import type { Reloaded } from './status.js'

/** What happens in a relay. Instants are milliseconds since 1970-01-01 UTC. */
export type RelayEvent =
  /** It listens, at these addresses: the first event. */
  | { readonly type: 'listening'; readonly url: string; readonly sandbox: string | null }
  /** A delivery is in the journal, and its sender gets the answer next. */
  | { readonly type: 'delivery'; readonly delivery: Delivery; readonly receipt: Receipt }
  /** An attempt is in the journal. */
  | { readonly type: 'attempt'; readonly attempt: AttemptEvent }
  /** A target went down, came up, is no longer configured, or is again. */
  | { readonly type: 'target'; readonly target: TargetStatus }
  /** A tunnel's state changed. */
  | { readonly type: 'tunnel'; readonly tunnel: TunnelStatus }
  | { readonly type: 'hook'; readonly hook: HookEvent }
  /** A user signed in, or out, over HTTP. */
  | { readonly type: 'account'; readonly account: AccountChange }
  /** A request was refused, and is in the list of refused requests. */
  | { readonly type: 'refused' }
  /** The outcome of a sign-in in a browser is stored for the program that waits for it. */
  | { readonly type: 'sign-in ended' }
  /** A one-time code has opened the inspector. */
  | { readonly type: 'code used' }
  /** Another relay of the profile forwards now, or this one does. */
  | { readonly type: 'turn' }
  /** Settings were replaced. */
  | { readonly type: 'settings'; readonly settings: ReadLiveSettings; readonly reloaded: Reloaded }
  /** Settings changed that could not be used: all stay as they were. */
  | { readonly type: 'settings refused'; readonly error: unknown }
  /** Another relay of the profile has changed entries, which are not known. */
  | { readonly type: 'stale' }
  | JournalChange

/** Gets each event. Must be cheap, and must not throw: deliveries wait for it. */
export type EventListener = (event: RelayEvent) => void

/** Where what happens in a relay is announced. Parts of a relay announce; what is made of them later subscribes. */
export class Events {
  readonly #listeners = new Set<EventListener>()
  readonly #last: EventListener

  /** @param last gets each event after all others: a program's listener may change what it is given */
  constructor(last: EventListener = () => {}) {
    this.#last = last
  }

  readonly emit: EventListener = (event) => {
    for (const listener of this.#listeners) listener(event)
    this.#last(event)
  }

  /** Calls `listener` with each event from now on, until it is disposed of. */
  subscribe(listener: EventListener): Disposable {
    // A function that subscribes twice is called twice.
    const own: EventListener = (event) => listener(event)
    this.#listeners.add(own)
    return { [Symbol.dispose]: () => void this.#listeners.delete(own) }
  }
}
