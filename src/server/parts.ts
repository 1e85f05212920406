import type { SignIn } from '../auth/parts.js'
import type { Command } from '../base/command-line.js'
import type { CodeHost } from '../codehost/host.js'
import type { LiveRoutes } from '../dispatch/routes.js'
import type { Reloaded } from '../events/status.js'
import type { InstanceStatus } from '../instance/protocol.js'
import type { FetchHandler } from '../http/listen.js'
import type { RouterParts } from '../http/router.js'
import type { Tokens } from '../tokens/tokens.js'
import type { Intake } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'
import type { Sources } from '../webhook/signature.js'
import type { ChangeStreams } from './changes.js'

/** A part of the service that serves its own paths. */
interface Mounted {
  readonly fetch: FetchHandler
}

/**
 * Readiness check. Rejects with a RelayError of status 503 while no delivery can be accepted. `watched` is for a load
 * balancer, which needs time to notice that relay stops.
 */
export type ReadyCheck = (options?: { readonly watched: boolean }) => Promise<void>

/** The inspector's one-time codes. */
export interface InspectorCodes {
  /** Issues a code with which a browser opens the inspector. */
  issueCode(): string
  /** True until the code is used or expires. */
  isPending(code: string): boolean
}

/** The running instance of a profile, as used by the other commands of its user. */
export interface ServedInstance {
  /** Computes an HMAC with the instance's key. */
  prove(text: string): string
  /** Returns its state for the commands of its profile. */
  status(): InstanceStatus
  /** Streams of changes that those commands follow. */
  readonly changes: ChangeStreams
  /** Returns where deliveries go now, with counts from the journal. @throws RelayError `storage` */
  routes(): Promise<LiveRoutes>
  /**
   * Reads the settings again and applies those that can change at run time. Resolves once new sources can receive.
   * @throws RelayError, usually `settings`, if they cannot be used. All settings then stay as they were
   */
  reload(): Promise<Reloaded>
}

/** Parts of every HTTP service of a relay, listening or not. */
export interface ServiceParts extends Omit<RouterParts, 'onUnrouted'> {
  readonly host: CodeHost
  readonly tokens: Tokens
  readonly signIn: SignIn
  /** Address of the page that a browser is sent to after signing in. */
  readonly baseUrl: () => string
  /** Sources whose deliveries are accepted, as they were when the application was made. */
  readonly sources: Sources
  readonly intake: Intake
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  readonly refusals: Refusals
  /** Completes the commands that its pages name. */
  readonly command: Command
}

/** Parts of the routes of the service. */
export interface AppParts extends ServiceParts {
  readonly ready: ReadyCheck
  /** The instance that other programs may call. Undefined if none may. */
  readonly instance: ServedInstance | undefined
  /** Loads the inspector on first use. Undefined if it is off. */
  readonly inspector: (() => Promise<Mounted & InspectorCodes>) | undefined
  /** Serves the metrics. Undefined if they are off. */
  readonly metrics: Mounted | undefined
}
