import type { SignIn } from '../auth/parts.js'
import type { Command } from '../base/command-line.js'
import type { Secret } from '../base/secret.js'
import type { NamedScheme } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import type { CodeHost } from '../codehost/host.js'
import type { Question } from '../dispatch/http-target.js'
import type { LiveRoutes } from '../dispatch/routes.js'
import type { Reply } from '../dispatch/target.js'
import type { Again, AgainOptions } from '../events/status.js'
import type { Reloaded } from '../events/status.js'
import type { InstanceStatus } from '../instance/protocol.js'
import type { FetchHandler } from '../http/listen.js'
import type { RouterParts } from '../http/router.js'
import type { Receipt } from '../journal/types.js'
import type { Tokens } from '../tokens/tokens.js'
import type { ExpectedSecrets } from '../webhook/expected-secrets.js'
import type { Intake } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'
import type { Sources } from '../senders/source.js'
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

/** Answers of the user's own programs to a sender, by the routes that reply. */
export interface Replying {
  /** True if the target of a route answers the sender of this source. */
  replies(source: string): boolean
  /** The target's answer to a delivery of this source that was just stored. Undefined if there is none in time. */
  reply(source: string, receipt: Receipt): Promise<Reply | undefined>
  /** The target's answer to a request of this source that is no delivery. Undefined if there is none in time. */
  ask(source: string, question: Question): Promise<Reply | undefined>
}

/** The running instance of a profile, as used by the other commands of its user. */
export interface ServedInstance extends Replying {
  /** Computes an HMAC with the instance's key. */
  prove(text: string): string
  /** Returns its state for the commands of its profile. */
  status(): InstanceStatus
  /** Streams of changes that those commands follow. */
  readonly changes: ChangeStreams
  /** Returns where deliveries go now, with counts from the journal. @throws RelayError `storage` */
  routes(): Promise<LiveRoutes>
  /**
   * Forwards an entry at once because a person asked for it: ahead of the queue, also to a target that is down. Its
   * attempts are counted from 1 again. @throws RelayError `not_found` for a removed entry; `storage`
   */
  forwardAgain(n: number, options?: AgainOptions): Promise<Again>
  /** Expects the secret that a handshake of this source brings. Returns it once it has come. */
  expectSecret(source: NamedScheme): Secret | undefined
  /** Gives up the waiting forwards of an entry. Resolves to the targets for which it waited. @throws RelayError `storage` */
  skip(n: number): Promise<readonly string[]>
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
  /** Address for the webhooks of the code host. Undefined if they come through a tunnel. */
  readonly payloadUrl: () => string | undefined
  /** Address of a source, as a sender on the internet is given it without a tunnel. */
  readonly addressOf: (source: string) => string
  /** Address of the page that a browser is sent to after signing in. */
  readonly baseUrl: () => string
  /** Sources whose deliveries are accepted, as they were when the application was made. */
  readonly sources: Sources
  readonly intake: Intake
  readonly clock: Clock
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  readonly refusals: Refusals
  readonly expected: ExpectedSecrets
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
