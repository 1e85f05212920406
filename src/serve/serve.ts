import { logAccounts } from '../auth/accounts.js'
import { isolateCallbacks } from '../base/callbacks.js'
import { type Log, silentLog } from '../base/log.js'
import type { RouteSettings, Settings } from '../base/settings.js'
import type { Cancellable } from '../base/wait.js'
import type { AttemptEvent } from '../dispatch/dispatcher.js'
import type { TargetStatus } from '../dispatch/target.js'
import type { EventListener } from '../events/events.js'
import { type Relay, type RelayOptions, RelayView } from '../relay.js'
import { start, type Started } from './start.js'

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

/**
 * Starts a relay: listens, takes the profile, opens its data, forwards.
 * @throws RelayError `unavailable` if the port is in use or the profile is being served, `storage` if its data cannot
 * be opened, `settings` for a provider address that is neither https nor loopback, or if the routes of another relay of
 * the profile differ
 */
export async function serve(given: Settings | SandboxSettings, options: ServeOptions = {}): Promise<Serving> {
  const { log, clock, seams, env, ...callbacks } = isolateCallbacks(options)
  const onEvent = listenerOf(callbacks, log)
  const started = await start(given, { log, clock, seams, env, onEvent })
  return servingOf(started)
}

/** Makes a listener that calls an embedding program's callbacks. Sign-ins have no callback and are logged. */
export function listenerOf(callbacks: ServeOptions, log: Log = silentLog): EventListener {
  const { onListening, onDelivery, onAttempt, onTarget } = callbacks
  const reportAccount = logAccounts(log)
  return (event) => {
    if (event.type === 'listening') onListening?.({ url: event.url, sandbox: event.sandbox })
    else if (event.type === 'delivery') onDelivery?.(event.delivery, event.receipt)
    else if (event.type === 'attempt') onAttempt?.(event.attempt)
    else if (event.type === 'target') onTarget?.(event.target)
    else if (event.type === 'account') reportAccount(event.account)
  }
}

/** Makes the public part of a running instance, enforced at run time. */
export function servingOf(started: Started): Serving {
  const { instance } = started
  const { url, settings } = instance
  return {
    url,
    settings,
    relay: relayOf(started),
    checkRoutes: (routes) => instance.checkRoutes(routes),
    replaceRoutes: (routes) => instance.replaceRoutes(routes),
    targets: () => instance.targets(),
    retryNow: () => instance.retryNow(),
    [Symbol.asyncDispose]: () => started[Symbol.asyncDispose](),
  }
}

function relayOf({ instance, ...owner }: Started): Relay {
  const { app, core, url } = instance
  const { database, clock } = core
  return new RelayView({
    address: url,
    app,
    appAt: (address) => instance.appAt(address),
    database,
    clock,
    owner,
  })
}
