import type { Cancellable } from '../base/abort.js'
import { Disposal } from '../base/disposal.js'
import { silentLog } from '../base/log.js'
import type { HandOnSettings, Settings } from '../base/settings.js'
import { systemClock } from '../base/time.js'
import { createDispatcher, type Dispatcher, type DispatcherOptions } from '../dispatch/dispatcher.js'
import { listen } from '../http/listen.js'
import { takeInstance, type Instance } from '../instance/instance.js'
import { createRelay, type Relay, type RelayOptions } from '../relay.js'
import type { Sandbox } from '../sandbox/start.js'
import { renewSandbox, startBeside } from './beside.js'
import { createGate } from './gate.js'
import { startTunnel, type OnTunnel } from './tunnel.js'
import { startUpkeep } from './upkeep.js'

export interface ServeOptions extends Omit<RelayOptions, 'prove'>, Cancellable {
  /** Starts the emulated code host beside the relay on this port (0: any); it then is the provider. */
  readonly sandboxPort?: number | undefined
  /**
   * False: deliveries are stored, and handed on by the next instance; nothing is removed from the journal. Default: true.
   */
  readonly handsOn?: boolean
  /** The environment of commands that deliveries are handed on to; relay's own secrets are taken out. Default: empty. */
  readonly env?: DispatcherOptions['env']
  /** Told where it listens, before anything else is. */
  readonly onListening?: (place: { readonly url: string; readonly sandbox: string | null }) => void
  readonly onAttempt?: DispatcherOptions['onAttempt']
  readonly onTarget?: DispatcherOptions['onTarget']
  /** Told of each change of the tunnel's state. */
  readonly onTunnel?: OnTunnel
}

/** The running instance of a profile. Disposing of it lets requests under way finish, then frees port and profile. */
export interface Serving extends AsyncDisposable {
  readonly url: string
  readonly relay: Relay
  /** As given, with the sandbox's address and client where one was started. */
  readonly settings: Settings
  /** The code host beside it, which has not sent anything yet: `ping()` announces its webhook. */
  readonly sandbox: Sandbox | undefined
  /** Hands deliveries on to these from now on. @throws RelayError `settings`, and nothing is changed. */
  replaceRoutes(handOn: HandOnSettings): void
}

/** How long requests under way may take to finish: an action waits up to 25 s for the code host. */
const GRACE_MS = 30_000

/**
 * Starts a relay: opens its data, listens, and takes the profile.
 * @throws RelayError `unavailable` when the port is in use or the profile is being served, `storage` when its data
 * cannot be opened, `settings` for a provider address that is neither https nor loopback.
 */
export async function serve(given: Settings, options: ServeOptions = {}): Promise<Serving> {
  const { log = silentLog, clock = systemClock, sandboxPort, signal } = options
  await using closing = new Disposal()
  const place = { url: '' }
  const beside = sandboxPort === undefined ? undefined : await startBeside(given, sandboxPort, place, log)
  if (beside) closing.use(beside.sandbox)
  const settings = beside?.settings ?? given

  let instance: Instance | undefined
  let dispatcher: Dispatcher | undefined
  const relay = closing.use(
    await createRelay(settings, {
      ...options,
      prove: (challenge) => instance?.prove(challenge),
      onDelivery: (delivery, receipt) => {
        options.onDelivery?.(delivery, receipt)
        dispatcher?.take(receipt.n, receipt.targets)
      },
    }),
  )
  const gate = createGate(relay)
  const listener = await listen(gate.fetch, {
    host: settings.host,
    port: settings.port,
    log,
    direct: gate.direct,
    limits: { grace: GRACE_MS },
  })
  const { url } = listener
  place.url = relay.address = url
  instance = await takeProfile(relay, settings, url, signal).catch(async (error: unknown) => {
    await listener.close()
    throw error
  })
  // In this order: the profile is ours until the last request is answered.
  closing.use(heldBy(instance))
  if (options.handsOn !== false)
    dispatcher = closing.use(createDispatcher(dispatcherOptions(relay, settings, options)))
  closing.defer(() => listener.close())
  if (beside) await renewSandbox(relay, beside)
  options.onListening?.({ url, sandbox: beside?.sandbox.url ?? null })
  dispatcher?.start()
  gate.open()
  const { database } = relay
  if (dispatcher) closing.use(startUpkeep({ database, dispatcher, retention: settings, clock, log }))
  if (settings.tunnel !== undefined) closing.use(await startTunnel(relay, settings, settings.tunnel, options))
  const owner = closing.move()
  return {
    url,
    relay,
    settings,
    sandbox: beside?.sandbox,
    replaceRoutes(handOn) {
      relay.routing.replace(handOn)
      dispatcher?.replaceRoutes(relay.routing.routes)
    },
    [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
  }
}

function dispatcherOptions(
  { journal, routing }: Relay,
  { concurrency }: Settings,
  { env = {}, log = silentLog, onAttempt, onTarget }: ServeOptions,
): DispatcherOptions {
  return { journal, routes: routing.routes, concurrency, env, log, onAttempt, onTarget }
}

function takeProfile(
  { database }: Relay,
  settings: Settings,
  url: string,
  signal: AbortSignal | undefined,
): Promise<Instance> {
  const { provider, providerUrl, publicUrl = url } = settings
  return takeInstance(database.store, { pid: process.pid, url, provider, providerUrl, publicUrl }, { signal })
}

function heldBy(instance: Instance): AsyncDisposable {
  return { [Symbol.asyncDispose]: () => instance.release() }
}
