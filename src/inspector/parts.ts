import type { Command, CommandPlace } from '../base/command-line.js'
import type { Log } from '../base/log.js'
import type { Clock } from '../base/time.js'
import type { CodeHost } from '../codehost/host.js'
import type { Routing } from '../dispatch/routes.js'
import type { EventListener } from '../events/events.js'
import type { Activity } from '../events/status.js'
import type { HostCheck } from '../http/router.js'
import type { Journal } from '../journal/journal.js'
import type { Store } from '../store/kv.js'
import type { Tokens } from '../tokens/tokens.js'
import type { Intake } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'
import type { Sources } from '../webhook/signature.js'

/** The running instance, as its inspector uses it. */
export interface InspectedInstance {
  activity(): Activity
  /** Forwards waiting deliveries, after forwards were stored as waiting. */
  forward(): void
  /** Calls `listener` with each event from now on. */
  subscribe(listener: EventListener): Disposable
}

/** Parts of the instance that the inspector shows or uses. */
export interface InspectorParts {
  /** Profile and settings for the command lines in its pages. */
  readonly place: CommandPlace
  readonly command: Command
  /** Address of the instance. */
  readonly url: string
  readonly host: Pick<CodeHost, 'name' | 'origin'>
  readonly sources: Sources
  /** Largest accepted webhook body, in bytes. */
  readonly maxBody: number
  readonly routing: Routing
  readonly instance: InspectedInstance
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
