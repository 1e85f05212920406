import { findOwnApp, type OwnApp } from '../auth/setup.js'
import { Disposal } from '../base/lifetime.js'
import { toRelayError } from '../base/errors.js'
import { type Log, silentLog } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import type { Relay } from '../relay.js'
import type { OnHook } from './hook-event.js'
import type { HookPlan } from './hooks.js'
import { type OnTunnel, PayloadAddress, startTunnel } from './tunnel.js'

interface SourcesOptions {
  readonly onTunnel: OnTunnel
  readonly onHook: OnHook
  /** Called when they have ended: what was last reported of them is no longer so. */
  readonly onSourcesEnd: () => void
  readonly hooks?: HookPlan
  readonly clock?: Clock
  readonly log?: Log
  /** Once it aborts, the sources belong to another relay. */
  readonly lost: AbortSignal
  /** Whether another relay takes them over when this one ends. */
  readonly hasSuccessor: () => Promise<boolean>
}

/** Starts what makes deliveries come: the tunnel, and the App's webhook and hooks with its address. */
export async function startSources(
  relay: Relay,
  settings: Settings,
  { hooks, ...options }: SourcesOptions,
): Promise<AsyncDisposable> {
  await using closing = new Disposal()
  const stop = new AbortController()
  const app = await ownAppOf(relay, stop.signal, options.log)
  closing.defer(async () => options.onSourcesEnd())
  const address = new PayloadAddress(settings, relay.address)
  const onTunnel: OnTunnel = (status) => {
    options.onTunnel(status)
    address.noticed(status)
  }
  if (settings.tunnel !== undefined)
    closing.use(await startTunnel(relay, settings, settings.tunnel, { ...options, onTunnel }))
  if (app) {
    const { startApp } = await import('./app.js')
    const appOptions = { ...options, app, stop, address, catchUp: hooks?.catchUp === true }
    closing.use(startApp(relay, settings, appOptions))
  }
  if (hooks) {
    const { startHooks } = await import('./hooks.js')
    closing.use(startHooks(relay, settings, hooks, { ...options, address }))
  }
  return closing.move()
}

/** Does not reject: relay serves without its App when the keychain fails. */
async function ownAppOf(
  { database: { secrets }, host }: Relay,
  signal: AbortSignal,
  log: Log = silentLog,
): Promise<OwnApp | undefined> {
  try {
    return await findOwnApp(secrets, host, { signal })
  } catch (error) {
    log.warn(`the App of this profile cannot be used: ${toRelayError(error).message}`)
    return undefined
  }
}
