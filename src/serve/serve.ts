import type { RouteSettings, Settings } from '../base/settings.js'
import type { Cancellable } from '../base/wait.js'
import type { AttemptEvent } from '../dispatch/dispatcher.js'
import type { TargetStatus } from '../dispatch/target.js'
import type { Relay, RelayOptions } from '../relay.js'

// Types of what an embedding program starts. They name nothing that relay keeps to itself.

export interface ServeOptions extends RelayOptions, Cancellable {
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

/** A running instance of a profile. Disposing of it lets requests in flight finish, then releases port and profile. */
export interface Serving extends AsyncDisposable {
  readonly url: string
  readonly relay: Relay
  /** Settings as given, with the sandbox's address and client if one was started. */
  readonly settings: Settings
  /**
   * Checks routes before they are used. @throws RelayError `settings` for an invalid route, or if the routes of another
   * relay of the profile differ; `storage`
   */
  checkRoutes(routes: RouteSettings): Promise<void>
  /** Replaces the routes from now on. @throws RelayError `settings` for an invalid route, with no change */
  replaceRoutes(routes: RouteSettings): void
  /** Lists the targets, with the number of deliveries that wait for each. */
  targets(): readonly TargetStatus[]
  /** Attempts waiting deliveries now, instead of after their delay. */
  retryNow(): void
}
