import { logAccounts } from '../auth/accounts.js'
import type { StopGate } from '../base/stop-gate.js'
import { inOwnWords, inSettings } from '../base/own-words.js'
import type { Settings } from '../base/settings.js'
import { type Log, silentLog } from '../base/log.js'
import type { EventListener } from '../events/events.js'
import type { Instance } from './instance.js'
import { journalOf, RelayView } from '../relay.js'
import { checkRoutes } from '../senders/check-settings.js'
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

/** Makes the public part of a listening instance, enforced at run time. `gate` stops it. */
export function servingOf(started: Started, gate: StopGate): Serving {
  return { url: started.instance.url, ...viewOf(started, gate) }
}

/** Makes the public part of a running instance, enforced at run time. `gate` stops it. */
export function viewOf({ instance }: Started, gate: StopGate): Omit<Serving, 'url'> {
  const { app, core, settings } = instance
  return {
    settings,
    relay: new RelayView(app, journalOf(core.database.sql, core.clock, gate), gate),
    async checkRoutes(routes) {
      gate.check()
      checkRoutes(routes)
      await inOwnWords(() => instance.checkRoutes(routes))
    },
    replaceRoutes(routes) {
      gate.check()
      checkRoutes(routes)
      replaceRoutes(instance, routes)
    },
    targets() {
      gate.check()
      return instance.targets()
    },
    retryNow() {
      gate.check()
      instance.retryNow()
    },
    [Symbol.asyncDispose]: () => gate.stop(),
  }
}

/** Replaces the routes of an instance. @throws RelayError `settings`, in the words of a program */
export function replaceRoutes(instance: Instance, routes: Settings['routes']): void {
  try {
    instance.replaceRoutes(routes)
  } catch (error) {
    throw inSettings(error)
  }
}
