import type { Log } from '../base/log.js'
import type { WebhookSecrets } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import type { TargetStatus } from '../dispatch/dispatcher.js'
import type { Routing } from '../dispatch/routes.js'
import type { Journal } from '../journal/journal.js'
import type { CodeHost } from '../codehost/host.js'
import type { Store } from '../store/kv.js'
import type { Tokens } from '../tokens/tokens.js'
import type { TunnelStatus } from '../tunnel/tunnel.js'
import type { Intake } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'
import type { ActivityFeed } from './activity.js'

/** What only the running instance knows and does. */
export interface Running {
  /** Milliseconds since 1970-01-01 UTC. */
  startedAt(): number
  targets(): readonly TargetStatus[]
  /** Undefined without a tunnel. */
  tunnel(): TunnelStatus | undefined
  /** What is wrong with the hooks of `--hook`, by repository. */
  hookProblems(): ReadonlyMap<string, string>
  /** Forwards an entry whose forwards to these targets were just recorded as waiting. */
  forward(n: number, targets: readonly string[]): void
}

/** The parts of the instance that the inspector shows or uses. */
export interface InspectorParts {
  readonly profile: string
  /** The instance's address. */
  readonly url: () => string
  readonly host: Pick<CodeHost, 'name' | 'webhook' | 'origin'>
  readonly secrets: WebhookSecrets
  /** Largest accepted webhook body, in bytes. */
  readonly maxBody: number
  readonly journal: Journal
  readonly routing: Routing
  readonly intake: Intake
  readonly refusals: Refusals
  readonly tokens: Tokens
  readonly store: Store
  readonly running: Running
  readonly activity: ActivityFeed
  /** Check of the Host header, stricter than the service's own. */
  readonly hostAllowed: (host: string | undefined) => boolean
  /** Aborts when the instance stops. */
  readonly stopped: AbortSignal
  readonly clock: Clock
  readonly log: Log
}
