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
  /** The environment of commands that receive deliveries; relay's own secrets are removed. Default: empty. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Called with where it listens, before any other callback. */
  readonly onListening?: (place: { readonly url: string; readonly sandbox: string | null }) => void
  /** Called for each attempt once it is recorded. */
  readonly onAttempt?: (event: AttemptEvent) => void
  /** Called when a target goes down, comes up, is no longer configured, or is again. */
  readonly onTarget?: (status: TargetStatus) => void
}

/** Settings of a relay that starts a sandbox, and uses it as its code host. */
export interface SandboxSettings extends Omit<Settings, 'provider' | 'providerUrl'> {
  /** `port`: of the sandbox; 0: any free one. */
  readonly sandbox: { readonly port: number }
}

/** The running instance of a profile. Disposing of it lets requests in flight finish, then releases port and profile. */
export interface Serving extends AsyncDisposable {
  readonly url: string
  readonly relay: Relay
  /** As given, with the sandbox's address and client where one was started. */
  readonly settings: Settings
  /** @throws RelayError `settings` for an invalid route, or where other relays of the profile have other ones; `storage`. */
  checkRoutes(routes: RouteSettings): Promise<void>
  /** Replaces the routes from now on. @throws RelayError `settings` for an invalid route, with no change. */
  replaceRoutes(routes: RouteSettings): void
  /** The targets, with the number of deliveries that wait for each. */
  targets(): readonly TargetStatus[]
  /** Attempts what waits now, instead of after its delay. */
  retryNow(): void
}

/**
 * Starts a relay: listens, takes the profile, opens its data, forwards.
 * @throws RelayError `unavailable` when the port is in use or the profile is being served, `storage` when its data cannot be opened, `settings`
 * for a provider address that is neither https nor loopback, or where other relays of the profile have other routes
 */
export async function serve(given: Settings | SandboxSettings, options: ServeOptions = {}): Promise<Serving> {
  const { log, clock, seams, env, ...callbacks } = isolateCallbacks(options)
  const onEvent = listenerOf(callbacks, log)
  const started = await start(given, { log, clock, seams, env, onEvent })
  return viewOf(started)
}

/** Calls a program's callbacks with what happens. A sign-in has none, and is a line of its log. */
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

/** What a program may use of a running instance, also at run time. */
export function viewOf(started: Started): Serving {
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
