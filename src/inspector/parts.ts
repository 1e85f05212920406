import type { Command, CommandPlace } from '../base/command-line.js'
import type { Log } from '../base/log.js'
import type { Clock } from '../base/time.js'
import type { ProfileRoute } from '../base/settings.js'
import type { RegisteredHook } from '../codehost/hooks.js'
import type { CodeHost } from '../codehost/host.js'
import type { Routing } from '../dispatch/routing.js'
import type { EventListener } from '../events/events.js'
import type { Activity, Again, AgainOptions } from '../events/status.js'
import type { HostCheck } from '../http/host-check.js'
import type { Journal } from '../journal/journal.js'
import type { Store } from '../store/kv.js'
import type { Tokens } from '../tokens/tokens.js'
import type { Intake } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'
import type { Sources } from '../senders/source.js'

/** The running instance, as its inspector uses it. */
export interface InspectedInstance {
  activity(): Activity
  /** Forwards an entry at once, by a person's own act. @throws RelayError `not_found` for a removed entry; `storage` */
  forwardAgain(n: number, options?: AgainOptions): Promise<Again>
  /** Gives up the waiting forwards of an entry. Resolves to the targets for which it waited. @throws RelayError `storage` */
  skip(n: number): Promise<readonly string[]>
  /** Calls `listener` with each event from now on. */
  subscribe(listener: EventListener): Disposable
}

/** A source that was added. */
export interface AddedSource {
  readonly name: string
  /** Address to enter at its sender. Null until its tunnel has a channel. */
  readonly address: string | null
  /** True if its secret replaced another one, which is accepted too. */
  readonly isReplaced: boolean
  /** Why it is probably not the right secret. */
  readonly doubt: string | undefined
  /** Text to enter at the sender as its verify token, if it asks for one. */
  readonly verifyToken: string | undefined
  /** The public half of relay's own key pair, for a sender that signs with one. */
  readonly ownKey: string | undefined
}

export interface HookGiven {
  /** `owner/name` */
  readonly repo: string
  /** User on whose behalf it is made. */
  readonly user: string
  /** Its address. Default: that of the tunnel, else the public one. */
  readonly url?: string | undefined
  /** Names of events, separated by commas. Default: every event. */
  readonly events?: string | undefined
}

/**
 * Additions that a person makes in the inspector, by the functions of the command line. All throw RelayError with a message for
 * that person; `conflict` where the program that runs relay has these settings itself.
 */
export interface Additions {
  /** Stores a route in the profile and uses it. Resolves to its label. */
  addRoute(route: ProfileRoute): Promise<string>
  /** Removes a route that the profile stores. */
  removeRoute(id: string): Promise<void>
  /** Stores a source and its secret, and receives from it. `text` is `[name=]scheme`, or the name of a source. */
  addSource(text: string, secret: string): Promise<AddedSource>
  /** Makes a hook at the code host, or repairs it. */
  addHook(hook: HookGiven): Promise<RegisteredHook>
}

/** Parts of the instance that the inspector shows or uses. */
export interface InspectorParts {
  /** Profile and settings for the command lines in its pages. */
  readonly place: CommandPlace
  readonly command: Command
  /** Address of the instance. */
  readonly url: string
  readonly host: Pick<CodeHost, 'name' | 'origin' | 'source' | 'url'>
  readonly sources: Sources
  /** Largest accepted webhook body, in bytes. */
  readonly maxBody: number
  readonly routing: Routing
  readonly instance: InspectedInstance
  readonly additions: Additions
  readonly journal: Journal
  readonly intake: Intake
  readonly refusals: Refusals
  readonly store: Store
  readonly tokens: Tokens
  /** Check of the Host header, stricter than the service's own. */
  readonly hostAllowed: HostCheck
  /** Aborts when the instance stops. */
  readonly stopped: AbortSignal
  /** Called when a one-time code has opened the inspector. Must not throw. */
  readonly onCodeUsed?: () => void
  readonly clock: Clock
  readonly log: Log
}
