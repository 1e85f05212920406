import { logAccounts } from '../auth/accounts.js'
import { type Log, silentLog } from '../base/log.js'
import type { EventListener } from '../events/events.js'
import { JournalQueries } from '../journal/read.js'
import { type Relay, RelayView } from '../relay.js'
import type { ServeOptions, Serving } from './serve.js'
import type { Started } from './start.js'

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

/** Makes the public part of a listening instance, enforced at run time. */
export function servingOf(started: Started): Serving {
  return { url: started.instance.url, ...viewOf(started) }
}

/** Makes the public part of a running instance, enforced at run time. */
export function viewOf(started: Started): Omit<Serving, 'url'> {
  const { instance } = started
  const { settings } = instance
  return {
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
  const { app, core } = instance
  return new RelayView(app, new JournalQueries(core.database.sql, core.clock), owner)
}
