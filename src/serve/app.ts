import type { OwnApp } from '../auth/setup.js'
import { aborted } from '../base/wait.js'
import { type Log, silentLog } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import type { Relay } from '../relay.js'
import { keepCatchingUp } from './catching-up.js'
import type { AppEvent } from './hook-event.js'
import type { PayloadAddress } from './tunnel.js'
import { keepTrying } from './trying.js'

interface AppOptions {
  readonly app: OwnApp
  /** Cancels the calls of the App, too. */
  readonly stop: AbortController
  readonly address: PayloadAddress
  /** Whether to catch up from its log. */
  readonly catchUp: boolean
  readonly log?: Log
  readonly onHook?: (event: AppEvent) => void
}

/**
 * Makes the App's webhook lead to this relay, since the address of a tunnel can change, and catches up from its log. Disposing of
 * it stops that; the webhook stays as it is.
 */
export function startApp(relay: Relay, settings: Settings, options: AppOptions): AsyncDisposable {
  const { stop } = options
  const running = run(relay, settings, options)
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}

/** Does not reject. */
async function run(
  relay: Relay,
  { webhookSecrets: { current: secret } }: Settings,
  { app, stop: { signal: stop }, address, catchUp, log = silentLog, onHook = () => {} }: AppOptions,
): Promise<void> {
  const url = await Promise.race([address.known, aborted(stop)])
  if (url === undefined) return
  const { slug, log: deliveries } = app
  const repaired = await keepTrying(() => app.repair(url, secret), {
    stop,
    signInLook: relay.limits.signInLook,
    onFailure: (error, retries) => onHook({ app: slug, state: 'failed', error, retries }),
  })
  if (!repaired) return
  onHook({ app: slug, state: 'leads here', url, repaired })
  if (!catchUp) return
  await keepCatchingUp({
    name: `the App ${slug}`,
    deliveries,
    relay,
    address,
    log,
    stop,
    onChange: (state) => onHook({ app: slug, ...state }),
    explain: (error) => error,
  })
}
