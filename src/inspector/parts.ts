import type { Command, CommandPlace } from '../base/command-line.js'
import type { Log } from '../base/log.js'
import type { Clock } from '../base/time.js'
import type { CodeHost } from '../codehost/host.js'
import type { TargetStatus } from '../dispatch/target.js'
import type { Routing } from '../dispatch/routes.js'
import type { HostCheck } from '../http/router.js'
import type { Journal } from '../journal/journal.js'
import type { Store } from '../store/kv.js'
import type { Tokens } from '../tokens/tokens.js'
import type { TunnelStatus } from '../instance/protocol.js'
import type { Intake } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'
import type { Sources } from '../webhook/signature.js'

/** What only the running instance knows and does. */
export interface Running {
  /** Whether the code host is a sandbox of its own. Default: it is not. */
  sandbox?(): boolean
  /** Milliseconds since 1970-01-01 UTC. */
  startedAt(): number
  targets(): readonly TargetStatus[]
  /** One for each source, if there is a tunnel. */
  tunnels(): readonly TunnelStatus[]
  /** What is wrong with the hooks of `--hook`, by repository. */
  hookProblems(): ReadonlyMap<string, string>
  /** Forwards what waits, after forwards were recorded as waiting. */
  forward(): void
}

/** What of the instance the inspector shows or uses. */
export interface InspectorParts {
  /** What the commands that it names are for. */
  readonly place: CommandPlace
  readonly command: Command
  /** The instance's address. */
  readonly url: () => string
  readonly host: Pick<CodeHost, 'name' | 'origin'>
  readonly sources: Sources
  /** Largest accepted webhook body, in bytes. */
  readonly maxBody: number
  readonly routing: Routing
  readonly running: Running
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
