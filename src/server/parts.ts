import type { RenewParts } from '../auth/renew.js'
import type { SignInParts } from '../auth/sign-in.js'
import type { Command } from '../base/command-line.js'
import type { CodeHost } from '../codehost/host.js'
import type { LiveRoutes } from '../dispatch/routes.js'
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

/** What the routes of the service are made of. */
export interface AppParts extends Omit<RouterParts, 'onUnrouted'> {
  readonly host: CodeHost
  readonly tokens: Tokens
  readonly signIn: SignInParts & RenewParts
  /** Address of the page that a browser is sent to after signing in. */
  readonly baseUrl: () => string
  /** Whose deliveries are taken, by name. */
  readonly sources: Sources
  readonly intake: Intake
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  readonly refusals: Refusals
  readonly command: Command
  readonly routes: () => Promise<LiveRoutes>
  /** HMAC with the instance's key; undefined when this process is not the profile's instance. */
  readonly prove: (text: string) => string | undefined
  readonly ready: ReadyCheck
  /** What the running instance tells the commands of its profile. Undefined: none runs. */
  readonly instance?: { status(): InstanceStatus; readonly changes: ChangeStreams } | undefined
  /** Loads the inspector when it is first asked for. Undefined: it is off. */
  readonly inspector?: (() => Promise<Mounted & InspectorCodes>) | undefined
  /** Answers requests for the metrics. Undefined: they are off. */
  readonly metrics?: Mounted | undefined
}
