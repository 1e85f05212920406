import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Settings } from '../base/settings.js'
import type { AttemptEvent } from '../dispatch/lane.js'
import type { TargetStatus } from '../dispatch/target.js'
import type { Relay, RelayOptions } from '../relay.js'

// Types of what an embedding program starts. They name nothing that relay keeps to itself.

export interface ServeOptions extends RelayOptions {
  /** Stops it when it aborts, as disposing of it does. */
  readonly signal?: AbortSignal | undefined
  /** Environment of commands that receive deliveries. relay's own secrets are removed. Default: empty. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Called with the addresses at which it listens, before any other callback. */
  readonly onListening?: (place: { readonly url: string; readonly sandbox: string | null }) => void
  /** Called for each attempt once it is stored. */
  readonly onAttempt?: (event: AttemptEvent) => void
  /** Called when a target goes down, comes up, is removed from the settings, or is added again. */
  readonly onTarget?: (status: TargetStatus) => void
}

/** Settings of a relay that starts a sandbox as its code host. */
export interface SandboxSettings extends Omit<Settings, 'provider' | 'providerUrl'> {
  /** `port` of the sandbox; 0 for any free one. */
  readonly sandbox: { readonly port: number }
}

/** A running relay. Disposing of it lets requests in flight finish, then releases its port and its folder. */
export interface Serving extends AsyncDisposable {
  readonly url: string
  readonly relay: Relay
  /** Settings as given, with the sandbox's address and client if one was started. */
  readonly settings: Settings
  /**
   * Checks routes before they are used. @throws RelayError `settings` for an invalid route, or if the routes of another
   * relay of the profile differ; `storage`
   */
  checkRoutes(routes: Settings['routes']): Promise<void>
  /** Replaces the routes from now on. @throws RelayError `settings` for an invalid route, with no change */
  replaceRoutes(routes: Settings['routes']): void
  /** Lists the targets, with the number of deliveries that wait for each. */
  targets(): readonly TargetStatus[]
  /** Attempts waiting deliveries now, instead of after their delay. */
  retryNow(): void
}

/** Which deliveries come to an address of a program. */
export interface ReceiveOptions {
  /** Source whose deliveries they are. Default: the code host. */
  readonly source?: string
  /**
   * Address that the sender posts to, for senders that sign it. Default: that of the request, with the origin of
   * `publicUrl` if the settings have it.
   */
  readonly address?: string
}

/** A relay behind the HTTP server of a program. It stores and forwards what the program passes to it. */
export interface Mounted extends Omit<Serving, 'url'> {
  /**
   * Answers a request of a sender, whatever its path and its Host. Never rejects: what fails is a response.
   * @throws RelayError `usage` for a source that the settings do not have
   */
  readonly fetch: (request: Request, options?: ReceiveOptions) => Promise<Response>
  /**
   * Makes a handler of Node's requests, which also is a route handler of Express. The body must not have been read, unless
   * as bytes (`express.raw`).
   * @throws RelayError `usage` for a source that the settings do not have
   */
  readonly handler: (options?: ReceiveOptions) => (req: IncomingMessage, res: ServerResponse) => Promise<void>
}
