import type { Cancellable } from '../base/abort.js'
import { Disposal } from '../base/disposal.js'
import { type Log, silentLog } from '../base/log.js'
import type { Limits } from '../base/seams.js'
import type { RouteSettings, Settings } from '../base/settings.js'
import { systemClock } from '../base/time.js'
import type { DispatcherOptions, TargetStatus } from '../dispatch/dispatcher.js'
import { createRouting } from '../dispatch/routing.js'
import { bodyBudgetFor } from '../http/body-budget.js'
import { listen, type Listener } from '../http/listen.js'
import type { InstanceRecord } from '../instance/instance.js'
import { createRelay, type Relay, type RelayOptions } from '../relay.js'
import type { Sandbox } from '../sandbox/start.js'
import { READY_PATH } from '../server/routes/ready.js'
import { openAgeClock } from './age-clock.js'
import { warnOfEarlierData } from './earlier-data.js'
import { registerSandbox, type SandboxSettings, startEmbeddedSandbox } from './embedded-sandbox.js'
import { guardOf, type Ownership } from './ownership.js'
import { createForwarding, type Forwarding } from './forwarding.js'
import { createReadiness, type Readiness } from './readiness.js'
import { createReadinessGate, type ReadinessGate } from './readiness-gate.js'
import { type OnHook, sourceOf } from './hook-event.js'
import type { HookPlan } from './hooks.js'
import { runSources } from './sources.js'
import type { TunnelStatus } from '../tunnel/state.js'
import { publishRemoteChanges } from './remote-changes.js'
import { commonRoutes, takeProfile } from './take-profile.js'
import type { OnTunnel } from './tunnel.js'

export interface ServeOptions
  extends Omit<RelayOptions, 'prove' | 'guard' | 'ready' | 'thread' | 'targets' | 'running'>, Cancellable {
  /**
   * False: deliveries are stored, and forwarded by the next instance; nothing is removed from the journal. Default: true.
   */
  readonly forwarding?: boolean
  /** The environment of commands that receive deliveries; relay's own secrets are removed. Default: empty. */
  readonly env?: DispatcherOptions['env']
  /**
   * Called once the profile is taken, before any request is answered; `sandbox`: whether it is that of an embedded sandbox.
   * What it returns is disposed of before anything stops.
   */
  readonly onTaken?: (record: InstanceRecord, settings: Settings, sandbox: boolean) => Disposable | undefined
  /** Called with where it listens, before any other callback. */
  readonly onListening?: (place: { readonly url: string; readonly sandbox: string | null }) => void
  readonly onAttempt?: DispatcherOptions['onAttempt']
  readonly onTarget?: DispatcherOptions['onTarget']
  /** Called for each change of the tunnel's state. */
  readonly onTunnel?: OnTunnel
  /** Hooks to have while it runs, and to catch up from. Default: none. */
  readonly hooks?: HookPlan
  /** Called for what happens to each of these hooks. */
  readonly onHook?: OnHook
}

/** The running instance of a profile. Disposing of it lets requests in flight finish, then releases port and profile. */
export interface Serving extends AsyncDisposable {
  readonly url: string
  readonly relay: Relay
  /** As given, with the sandbox's address and client where one was started. */
  readonly settings: Settings
  /**
   * Aborts when another process has taken the profile, with a RelayError `unavailable` that names it as the reason. From then
   * on nothing is acknowledged, forwarded or recorded. Dispose of this then.
   */
  readonly lost: AbortSignal
  /** The embedded code host, which has not sent anything yet: `ping()` announces its webhook. */
  readonly sandbox: Sandbox | undefined
  /**
   * Lets the relays that serve the profile with this one agree on routes that are to be replaced.
   * @throws RelayError `settings` for an invalid route, or where the others have other routes; `storage`.
   */
  checkRoutes(routes: RouteSettings): Promise<void>
  /** Replaces the routes from now on. @throws RelayError `settings` for an invalid route, with no change. */
  replaceRoutes(routes: RouteSettings): void
  /** The targets, with the number of deliveries that wait for each. */
  targets(): readonly TargetStatus[]
  /** Attempts what waits now, instead of after its delay. */
  retryNow(): void
}

/**
 * Starts a relay: opens its data, listens, and takes the profile.
 * @throws RelayError `unavailable` when the port is in use or the profile is being served, `storage` when its data
 * cannot be opened, `settings` for a provider address that is neither https nor loopback.
 */
export async function serve(given: Settings | SandboxSettings, options: ServeOptions = {}): Promise<Serving> {
  const { log = silentLog, signal, seams } = options
  const { clock = seams?.clock ?? systemClock } = options
  await using closing = new Disposal()
  const place = { url: '' }
  const embedded =
    'sandboxPort' in given
      ? await startEmbeddedSandbox(given, place, log)
      : { settings: given, sandbox: undefined }
  const { settings, sandbox } = embedded
  if (sandbox) closing.use(sandbox)
  const later: Later = { hookProblems: new Map(), readiness: createReadiness(log) }
  const relay = closing.use(await createRelay(settings, relayOptions(options, later)))
  const { onTarget, ...ofSources } = observed(options, relay, later)
  warnOfEarlierData(settings, log)
  const ages = await openAgeClock({ store: relay.database.store, clock })
  const gate = createReadinessGate(relay.app.fetch, READY_PATH)
  const listener = await startListener(gate, settings, relay.limits, log)
  const url = (place.url = relay.address = listener.url)
  const taking = takeProfile(relay, settings, url, { log, signal })
  const ownership = (later.ownership = await orClose(listener, taking))
  // In this order: the profile is ours until the last request is answered.
  const { lost, record, membership } = closing.use(ownership)
  const remote = membership && publishRemoteChanges(relay, membership)
  closing.defer(async () => remote?.[Symbol.dispose]())
  const forwarding = { env: {}, ...options, onTarget, log, clock, random: seams?.random, ages, ownership }
  if (options.forwarding !== false)
    later.forwarding = closing.use(createForwarding(relay, settings, forwarding))
  closing.defer(() => relay.journal.flush())
  closing.defer(() => listener.close())
  closing.defer(async () => relay.closeInspector())
  if (embedded.sandbox) await registerSandbox(relay, embedded)
  const taken = options.onTaken?.(record, settings, sandbox !== undefined)
  closing.defer(async () => taken?.[Symbol.dispose]())
  options.onListening?.({ url, sandbox: sandbox?.url ?? null })
  const started = later.forwarding?.start()
  gate.open()
  later.readiness.start(relay.journal)
  await started
  closing.use(await runSources(relay, settings, { ...options, ...ofSources, clock, ownership }))
  closing.defer(() => later.readiness.stop(lost))
  const owner = closing.move()
  return {
    url,
    relay,
    settings,
    lost,
    sandbox,
    async checkRoutes(forward) {
      await membership?.changeRoutes(commonRoutes(createRouting(forward), settings))
    },
    replaceRoutes(forward) {
      relay.routing.replace(forward)
      later.forwarding?.replaceRoutes(relay.routing.routes)
    },
    targets: () => later.forwarding?.status() ?? [],
    retryNow: () => later.forwarding?.retryNow(),
    [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
  }
}

/** What the relay uses once the profile is taken. */
interface Later {
  ownership?: Ownership
  forwarding?: Forwarding
  tunnel?: TunnelStatus | undefined
  readonly readiness: Readiness
  /** By repository. */
  readonly hookProblems: Map<string, string>
}

function relayOptions(options: ServeOptions, later: Later): RelayOptions {
  const targets = (): readonly TargetStatus[] => later.forwarding?.status() ?? []
  return {
    ...options,
    prove: (challenge) => later.ownership?.prove(challenge),
    guard: guardOf(() => later.ownership),
    ready: (asked) => later.readiness.check(asked),
    targets,
    running: {
      startedAt: () => Date.parse(later.ownership?.record.startedAt ?? ''),
      targets,
      tunnel: () => later.tunnel,
      hookProblems: () => later.hookProblems,
      forward: (n, ids) => later.forwarding?.forward(n, ids),
    },
    thread: options.seams?.thread ?? true,
    onDelivery: (delivery, receipt) => {
      options.onDelivery?.(delivery, receipt)
      later.forwarding?.take(delivery, receipt)
    },
  }
}

/** The caller's observers, and with them the open inspectors. */
function observed(
  { onTarget, onTunnel, onHook }: ServeOptions,
  { activity }: Relay,
  later: Later,
): Required<Pick<ServeOptions, 'onTarget' | 'onTunnel' | 'onHook'>> & { onSourcesEnd(): void } {
  return {
    onTarget(status) {
      onTarget?.(status)
      activity.publish({ type: 'state' })
    },
    onTunnel(status) {
      onTunnel?.(status)
      later.tunnel = status
      activity.publish({ type: 'state' })
    },
    onHook(event) {
      onHook?.(event)
      if ('error' in event) later.hookProblems.set(sourceOf(event), event.error.message)
      else later.hookProblems.delete(sourceOf(event))
      activity.publish({ type: 'state' })
    },
    onSourcesEnd() {
      later.tunnel = undefined
      later.hookProblems.clear()
      activity.publish({ type: 'state' })
    },
  }
}

function startListener(
  { fetch }: ReadinessGate,
  { host, port, maxBody }: Settings,
  { headers, request, idle, stop: grace }: Limits,
  log: Log,
): Promise<Listener> {
  const bodyBudget = bodyBudgetFor(maxBody)
  return listen(fetch, { host, port, log, bodyBudget, limits: { headers, request, idle, grace } })
}

/** Closes the listener if the profile cannot be taken: it has answered nothing. */
async function orClose<Result>(listener: Listener, taking: Promise<Result>): Promise<Result> {
  try {
    return await taking
  } catch (error) {
    await listener.close()
    throw error
  }
}
