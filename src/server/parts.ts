import type { RenewParts } from '../auth/renew.js'
import type { SignInParts } from '../auth/sign-in.js'
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

/** A part of the service that answers for itself. */
interface Mounted {
  readonly fetch: FetchHandler
}

/** Rejects with a RelayError of status 503 while no delivery can be taken. `watched`: a load balancer asks, and needs time to notice an end. */
export type ReadyCheck = (options?: { readonly watched: boolean }) => Promise<void>

/** The part of the inspector that gives out codes. */
export interface InspectorCodes {
  /** A one-time code, with which a browser opens it. */
  issueCode(): string
  /** Whether the code still waits to be used. */
  isPending(code: string): boolean
}

/** The running instance of a profile, as other programs of its user reach it. */
export interface ServedInstance {
  /** HMAC with the instance's key. */
  prove(text: string): string
  /** What it says of itself to the commands of its profile. */
  status(): InstanceStatus
  /** Where those commands follow what changes. */
  readonly changes: ChangeStreams
  /** Where deliveries go now, with the numbers of the journal. @throws RelayError `storage` */
  routes(): Promise<LiveRoutes>
  /**
   * Reads the settings again and uses those that can be replaced while it runs; resolves once new sources are received from.
   * @throws RelayError, usually `settings`, where they cannot be used: all stay as they were
   */
  reload(): Promise<Reloaded>
}

/** What every service of a relay is made of, also that of one that does not listen. */
export interface ServiceParts extends Omit<RouterParts, 'onUnrouted'> {
  readonly host: CodeHost
  readonly tokens: Tokens
  readonly signIn: SignInParts & RenewParts
  /** Address of the page that a browser is sent to after signing in. */
  readonly baseUrl: () => string
  /** Whose deliveries are taken: those that there are when the application is made. */
  readonly sources: Sources
  readonly intake: Intake
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  readonly refusals: Refusals
  /** Completes the commands that its pages name. */
  readonly command: Command
}

/** What the routes of the service are made of. */
export interface AppParts extends ServiceParts {
  readonly ready: ReadyCheck
  /** Undefined: no other program may ask anything of this one. */
  readonly instance: ServedInstance | undefined
  /** Loads the inspector when it is first asked for. Undefined: it is off. */
  readonly inspector: (() => Promise<Mounted & InspectorCodes>) | undefined
  /** Answers requests for the metrics. Undefined: they are off. */
  readonly metrics: Mounted | undefined
}
