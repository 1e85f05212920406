import { OwnApp } from '../auth/setup.js'
import { Disposal } from '../base/lifetime.js'
import { toRelayError } from '../base/errors.js'
import type { HookParts, HookPlan } from './hooks.js'
import { PayloadAddress, startTunnel } from './tunnel.js'

/** Starts what makes deliveries come: the tunnel, and the App's webhook and hooks with its address. */
export async function startSources(
  given: Omit<HookParts, 'address'>,
  plan: HookPlan | undefined,
): Promise<AsyncDisposable> {
  const { relay, settings } = given
  await using closing = new Disposal()
  const stop = new AbortController()
  const app = await ownAppOf(given, stop.signal)
  const parts = { ...given, address: new PayloadAddress(settings, relay.address) }
  if (settings.tunnel !== undefined) closing.use(await startTunnel(parts, settings.tunnel))
  if (app || plan) {
    const { startApp, startHooks } = await import('./hooks.js')
    if (app) closing.use(startApp(parts, app, { stop, catchUp: plan?.catchUp === true }))
    if (plan) closing.use(startHooks(parts, plan))
  }
  return closing.move()
}

/** Does not reject: relay serves without its App when the keychain fails. */
async function ownAppOf(
  { relay: { database, host }, log }: Pick<HookParts, 'relay' | 'log'>,
  signal: AbortSignal,
): Promise<OwnApp | undefined> {
  try {
    return await OwnApp.find(database.secrets, host, { signal })
  } catch (error) {
    log.warn(`the App of this profile cannot be used: ${toRelayError(error).message}`)
    return undefined
  }
}
