import { Disposal } from '../base/disposal.js'
import { toRelayError } from '../base/errors.js'
import { type Log, silentLog } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import type { Relay } from '../relay.js'
import type { OwnApp } from '../setup/own-app.js'
import { readAppHook } from '../setup/record.js'
import type { OnHook } from './hook-event.js'
import type { HookPlan } from './hooks.js'
import { SOURCES_DUTY } from './duties.js'
import type { Ownership } from './ownership.js'
import { watchAddress } from './payload-address.js'
import { type OnTunnel, startTunnel } from './tunnel.js'

interface SourcesOptions {
  readonly ownership: Ownership
  readonly onTunnel: OnTunnel
  readonly onHook: OnHook
  /** Called when they have ended: here, or because another relay has them now. What was last reported of them is no longer so. */
  readonly onSourcesEnd: () => void
  readonly hooks?: HookPlan
  readonly clock?: Clock
  readonly log?: Log
}

/** Runs what makes deliveries come, in one relay at a time: the tunnel, and the App's webhook and hooks with its address. */
export async function runSources(
  relay: Relay,
  settings: Settings,
  options: SourcesOptions,
): Promise<AsyncDisposable> {
  const app = await ownAppOf(relay, options.log)
  if (settings.tunnel === undefined && !options.hooks && !app) return new Disposal()
  return options.ownership.duties.run({
    name: SOURCES_DUTY,
    what: 'the tunnel and the hooks',
    start: ({ lost }) => startSources(relay, settings, { ...options, app, lost }),
  })
}

interface RunningSources extends SourcesOptions {
  readonly app: OwnApp | undefined
  /** Once it aborts, the sources belong to another process. */
  readonly lost: AbortSignal
}

async function startSources(
  relay: Relay,
  settings: Settings,
  { ownership: { membership }, hooks, ...options }: RunningSources,
): Promise<AsyncDisposable> {
  await using closing = new Disposal()
  closing.defer(async () => options.onSourcesEnd())
  const { app } = options
  const address = watchAddress(settings, relay.address)
  const onTunnel = address.onTunnel(options.onTunnel)
  if (settings.tunnel !== undefined)
    closing.use(await startTunnel(relay, settings, settings.tunnel, { ...options, onTunnel }))
  if (app) {
    const { startApp } = await import('./app.js')
    closing.use(startApp(relay, settings, { ...options, app, address, catchUp: hooks?.catchUp === true }))
  }
  if (hooks) {
    const { startHooks } = await import('./hooks.js')
    const hasSuccessor = async (): Promise<boolean> => (await membership?.hasOthers()) === true
    closing.use(startHooks(relay, settings, hooks, { ...options, address, hasSuccessor }))
  }
  return closing.move()
}

/** Does not reject: relay serves without its App when the keychain fails. */
async function ownAppOf(
  { database: { store }, provider }: Relay,
  log: Log = silentLog,
): Promise<OwnApp | undefined> {
  try {
    if (!(await readAppHook(store, provider.url))) return undefined
    // Loaded late: most profiles have no App of their own.
    const { findOwnApp } = await import('../setup/own-app.js')
    return await findOwnApp(store, provider)
  } catch (error) {
    log.warn(`the App of this profile cannot be used: ${toRelayError(error).message}`)
    return undefined
  }
}
