import { findOwnApp } from '../auth/setup.js'
import { isolateCallbacks } from '../base/callbacks.js'
import type { Cancellable } from '../base/wait.js'
import { Disposal } from '../base/lifetime.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { type Log, silentLog } from '../base/log.js'
import { TIME_LIMITS } from '../base/seams.js'
import type { RouteSettings, Settings } from '../base/settings.js'
import { monotonicClock, systemClock } from '../base/time.js'
import { Dispatcher, type DispatcherOptions } from '../dispatch/dispatcher.js'
import type { TargetStatus } from '../dispatch/target.js'
import { Routing, labelOf } from '../dispatch/routes.js'
import type { Header } from '../http/headers.js'
import { listen } from '../http/listen.js'
import { errorResponse } from '../http/router.js'
import {
  createInstanceRecord,
  type InstanceRecord,
  type InstanceStatus,
  prove,
  type TunnelStatus,
} from '../instance/protocol.js'
import { takeProfile } from '../instance/running.js'
import { forwardedRequest } from '../replay/prepare.js'
import {
  joinParts,
  type PartOptions,
  type Relay,
  type RelayOptions,
  type RelayParts,
  viewOf,
} from '../relay.js'
import { lastSandboxUrl, SANDBOX_CLIENT, saveSandboxUrl } from '../sandbox/client.js'
import type { Sandbox } from '../sandbox/sandbox.js'
import type { ReadyCheck } from '../server/parts.js'
import { type Database, openDatabase } from '../store/open.js'
import { digestOf, Duties, type Turn } from './duties.js'
import { sourceOf } from './hook-event.js'
import type { HookParts, HookPlan } from './hooks.js'
import { startMaintenance } from './maintenance.js'
import { Readiness } from './readiness.js'
import { statusOf, type StatusParts } from './status.js'
import { checkTunnel, PayloadAddress, startTunnels } from './tunnel.js'
import { isObject } from '../json/parse.js'

export interface ServeOptions extends RelayOptions, Cancellable {
  /** The environment of commands that receive deliveries; relay's own secrets are removed. Default: empty. */
  readonly env?: DispatcherOptions['env']
  /** Called with where it listens, before any other callback. */
  readonly onListening?: (place: { readonly url: string; readonly sandbox: string | null }) => void
  readonly onAttempt?: DispatcherOptions['onAttempt']
  readonly onTarget?: DispatcherOptions['onTarget']
}

/** @internal What the command line gives besides. None of its callbacks may throw, but for `onTaken`. */
export interface StartOptions
  extends ServeOptions, Pick<PartOptions, 'database' | 'sendOnce' | 'onAccount' | 'place'> {
  /**
   * Called once the profile is taken, before any request is answered; `sandbox`: whether it is that of an embedded sandbox. What it returns is
   * disposed of before anything stops.
   */
  readonly onTaken?: (record: InstanceRecord, settings: Settings, sandbox: boolean) => Disposable | undefined
  /** What the command line alone knows, for the status of the instance. */
  readonly shown?: Pick<StatusParts, 'folderHost' | 'hasMadeSecret'>
  /** Called for each change of a tunnel's state. */
  readonly onTunnel?: HookParts['onTunnel']
  /** Hooks to have while it runs, and to catch up from. Default: none. */
  readonly hooks?: HookPlan
  /** Called for what happens to each of these hooks. */
  readonly onHook?: HookParts['onHook']
}

/** Settings of a relay that starts a sandbox, and uses it as its code host. */
export interface SandboxSettings extends Omit<Settings, 'provider' | 'providerUrl'> {
  /** `port`: of the sandbox; 0: any free one. */
  readonly sandbox: { readonly port: number }
}

/** @internal Settings without what the profile's data holds, such as a webhook secret that relay made. */
export interface IncompleteSettings extends Pick<Settings, 'folder' | 'store' | 'host' | 'port' | 'maxBody'> {
  /** Called once the profile is taken and its data is open. It may make what is missing. */
  readonly complete: (database: Database) => Promise<Settings | SandboxSettings>
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

/** @internal The same with its parts, for the command line and the testing kit. */
export interface Started extends Omit<Serving, 'relay'> {
  readonly relay: RelayParts
  /** The embedded code host, which has not sent anything yet: `ping()` announces its webhook. */
  readonly sandbox: Sandbox | undefined
}

/** What changes while the relay runs, and the observers of the changes. */
interface State {
  readonly options: StartOptions
  readonly log: Log
  /** Until the start has succeeded, and while no other process has written into its data: what it made is then removed again. */
  isNew: boolean
  relay?: RelayParts
  record?: InstanceRecord
  readonly startedAt: number
  settings?: Settings
  duties?: Duties
  /** While this relay forwards. */
  dispatcher?: Dispatcher | undefined
  sources?: AsyncDisposable | undefined
  maintenance?: ReturnType<typeof startMaintenance> | undefined
  /** By source. */
  readonly tunnels: Map<string, TunnelStatus>
  /** Another relay forwards. */
  isElsewhere?: boolean
  /** Its code host is a sandbox of its own. */
  hasSandbox?: boolean
  /** By repository. */
  readonly hookProblems: Map<string, string>
}

/**
 * Starts a relay: listens, takes the profile, opens its data, forwards.
 * @throws RelayError `unavailable` when the port is in use or the profile is being served, `storage` when its data cannot be opened, `settings`
 * for a provider address that is neither https nor loopback, or where other relays of the profile have other routes
 */
export async function serve(given: Settings | SandboxSettings, options: ServeOptions = {}): Promise<Serving> {
  const { relay, sandbox: _, ...serving } = await start(given, isolateCallbacks(options))
  return { ...serving, relay: viewOf(relay, serving) }
}

/** @internal The same, with its parts. @throws RelayError as {@link serve}; what {@link IncompleteSettings.complete} does */
export async function start(
  given: Settings | SandboxSettings | IncompleteSettings,
  options: StartOptions = {},
): Promise<Started> {
  const { log = silentLog, seams } = options
  await using closing = new Disposal()
  const state = createState(options, log)
  const readiness = new Readiness(log)
  const { host, port, maxBody } = given
  const { stop: grace, ...limits } = { ...TIME_LIMITS, ...seams?.limits }
  // Listen first: another relay must find the port in use, and port 0 is known only then. Nothing is answered yet.
  const listener = await listen(readiness.fetch, { host, port, log, maxBody, limits: { ...limits, grace } })
  const { url } = listener
  const closeListener = async (): Promise<void> => {
    // What still waits, since the start failed, is answered now.
    readiness.open(() => errorResponse(new RelayError('unavailable', 'relay is stopping'), silentLog))
    await listener.close()
  }
  const opened = await open(given, url, closing, state, readiness.check).catch(async (error: unknown) => {
    await closeListener()
    throw error
  })
  const { relay, record, duties, settings, sandbox } = opened
  Object.assign(state, { relay, record, settings, duties })
  // In this order: the profile is ours until the last request is answered.
  closing.defer(() => relay.journal.flush())
  closing.use(duties)
  closing.defer(closeListener)
  // While it still answers what they send.
  closing.defer(async () => state.sources?.[Symbol.asyncDispose]())
  closing.defer(async () => relay.closeInspector())
  if (sandbox) await registerSandbox(relay, settings, sandbox.url, log)
  const taken = options.onTaken?.(record, settings, sandbox !== undefined)
  closing.defer(async () => taken?.[Symbol.dispose]())
  options.onListening?.({ url, sandbox: sandbox?.url ?? null })
  readiness.open(relay.app.fetch)
  readiness.start(relay.journal)
  await duties.run((turn) => startDuties(turn, relay, settings, state))
  closing.defer(() => readiness.stop())
  relay.database.removeCopies()
  state.isNew = false
  const owner = closing.move()
  return {
    url,
    relay,
    settings,
    sandbox,
    async checkRoutes(forward) {
      await duties.changeRoutes(digestOf(new Routing(forward), settings))
    },
    replaceRoutes(forward) {
      relay.routing.replace(forward)
      state.dispatcher?.replaceRoutes(relay.routing.routes)
      relay.changed({ type: 'state' })
    },
    targets: () => targetsOf(state),
    retryNow: () => state.dispatcher?.retryNow(),
    [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose](),
  }
}

function createState(options: StartOptions, log: Log): State {
  const [tunnels, hookProblems] = [new Map(), new Map()]
  return { options, log, isNew: true, startedAt: Date.now(), tunnels, hookProblems }
}

/** Takes the profile, opens its data and puts the parts together. Only then it is known what relay made for the profile before. */
async function open(
  given: Settings | SandboxSettings | IncompleteSettings,
  url: string,
  closing: Disposal,
  state: State,
  ready: ReadyCheck,
) {
  const { options, log } = state
  const { seams, clock = seams?.clock } = options
  const { folder, store: kind } = given
  const taken = await takeProfile(given)
  closing.defer(async () => taken?.[Symbol.dispose]())
  closing.defer(async () => {
    if (state.isNew) await taken?.discard()
  })
  const onSlow = (text: string): void => log.info(text)
  const database =
    options.database ??
    closing.use(await openDatabase({ kind, folder, clock, fault: seams?.storage, onSlow, migrate: true }))
  closing.defer(async () => void (state.isNew &&= !database.isShared()))
  const complete = 'complete' in given ? await given.complete(database) : given
  const { settings, sandbox } = await withSandbox(complete, url, closing, log)
  checkTunnel(settings)
  state.hasSandbox = sandbox !== undefined
  const relay = closing.use(await joinParts(settings, { ...relayOptions(state, ready), database }))
  relay.address = url
  const record = createInstanceRecord({ pid: process.pid, url, profile: settings.profile })
  return { relay, record, settings, sandbox, duties: await takeDuties(relay, settings, state) }
}

/** Starts the embedded code host, which is loaded only here, where the settings ask for one: it then replaces code host and client. */
async function withSandbox(
  given: Settings | SandboxSettings,
  url: string,
  closing: Disposal,
  log: Log,
): Promise<{ readonly settings: Settings; readonly sandbox: Sandbox | undefined }> {
  if (!wantsSandbox(given)) return { settings: given, sandbox: undefined }
  const { sandbox: wanted, ...settings } = given
  const { id, secret } = SANDBOX_CLIENT
  const { openSandbox } = await import('../sandbox/sandbox.js')
  const webhook = { url: () => `${url}/webhook`, secret: settings.webhookSecrets.current }
  const client = { id, secret: secret.reveal() }
  const sandbox = closing.use(await openSandbox({ client, webhook, port: wanted.port, log }))
  const host = { provider: 'sandbox', providerUrl: sandbox.url, oauthClient: SANDBOX_CLIENT } as const
  return { settings: { ...settings, ...host }, sandbox }
}

/** A program without types may name it and mean none. */
function wantsSandbox(settings: Settings | SandboxSettings): settings is SandboxSettings {
  return 'sandbox' in settings && isObject(settings.sandbox)
}

/**
 * Revokes the tokens of earlier sandboxes, which a new one does not know, and stores its address for other commands. A full disk is a
 * warning. @throws RelayError `storage` for a keychain
 */
async function registerSandbox(
  relay: RelayParts,
  { store }: Pick<Settings, 'store'>,
  url: string,
  log: Log,
): Promise<void> {
  const { tokens } = relay
  const { secrets } = relay.database
  try {
    const gone = new Set([url, await lastSandboxUrl(secrets)])
    for (const { userId, origin } of await tokens.owners()) if (gone.has(origin)) await tokens.revoke(userId)
    await saveSandboxUrl(secrets, url)
  } catch (error) {
    // A keychain that cannot be used has no other store to fall back to.
    if (store === 'keychain') throw error
    log.warn(`commands cannot find the sandbox: ${toRelayError(error).message}`)
  }
}

async function takeDuties(relay: RelayParts, settings: Settings, state: State): Promise<Duties> {
  const { database, routing, changed, journal } = relay
  let newest = await journal.newest()
  /** Has open inspectors read again what other relays have changed, and the queues looked at again. */
  const look = async (numbers: readonly number[] | undefined): Promise<void> => {
    void state.dispatcher?.refresh()
    const last = await journal.newest()
    if (numbers?.length !== 0 || last !== newest) changed({ type: 'stale' })
    newest = last
  }
  const duties = new Duties({
    routes: digestOf(routing, settings),
    onNotice: (numbers) => void look(numbers).catch(() => {}),
    onTurn() {
      changed({ type: 'state' })
      // A relay that has had the turn since its start prints nothing.
      if (duties.isOurs && !state.isElsewhere) return
      state.isElsewhere = !duties.isOurs
      for (const status of targetsOf(state)) state.options.onTarget?.(status)
    },
    log: state.log,
  })
  if (database.shared) await duties.join(database.shared)
  return duties
}

/** Forwards, tunnels, keeps hooks and removes old deliveries, until it is disposed of. */
async function startDuties(
  { mayRun, lost }: Turn,
  relay: RelayParts,
  settings: Settings,
  state: State,
): Promise<AsyncDisposable> {
  const { options, log } = state
  const { seams, clock = seams?.clock ?? systemClock } = options
  const { database, journal, limits, routing, sources, changed } = relay
  await using closing = new Disposal()
  const dispatcher = closing.use(
    new Dispatcher({
      journal,
      concurrency: settings.concurrency,
      env: options.env ?? {},
      log,
      mayRun,
      sendable: (entry, { ofFolder = false }) =>
        forwardedRequest(entry, sources.get(entry.provider), clock(), { withToken: !ofFolder }),
      onTarget(status) {
        changed({ type: 'state' })
        options.onTarget?.(status)
      },
      onAttempt(event) {
        state.maintenance?.added(sizeOf(event.attempt.answer, event.attempt.headers))
        options.onAttempt?.(event)
      },
      clock,
      monotonic: seams?.clock ?? monotonicClock,
      random: seams?.random,
      limits,
    }),
  )
  await dispatcher.start(() => routing.routes)
  state.dispatcher = dispatcher
  closing.defer(async () => void (state.dispatcher = undefined))
  const maintenance = { database, journal, retention: settings, log, interval: limits.sweep }
  state.maintenance = closing.use(startMaintenance(maintenance))
  closing.defer(async () => void (state.maintenance = undefined))
  state.sources = closing.use(await startSources(relay, settings, { clock, lost }, state))
  return closing.move()
}

/** Starts what makes deliveries come. What that reports is there for the inspector until it has ended. */
async function startSources(
  relay: RelayParts,
  settings: Settings,
  { clock, lost }: Pick<HookParts, 'clock' | 'lost'>,
  state: State,
): Promise<AsyncDisposable> {
  const { options, log } = state
  const { hooks } = options
  const changed = (): void => relay.changed({ type: 'state' })
  await using closing = new Disposal()
  const stop = new AbortController()
  // relay serves without its App when the keychain fails.
  const app = await findOwnApp(relay.database.secrets, relay.host, {
    signal: stop.signal,
    command: relay.command,
  }).catch((error: unknown) => {
    log.warn(`the App of this profile cannot be used: ${toRelayError(error).message}`)
    return undefined
  })
  closing.defer(async () => {
    state.tunnels.clear()
    state.hookProblems.clear()
    changed()
  })
  const parts: HookParts = {
    relay,
    settings,
    address: new PayloadAddress(settings, relay.address),
    clock,
    log,
    lost,
    hasSuccessor: async () => (await state.duties?.hasOthers()) === true,
    onTunnel(status) {
      options.onTunnel?.(status)
      state.tunnels.set(status.source, status)
      changed()
    },
    onHook(event) {
      options.onHook?.(event)
      if ('error' in event) state.hookProblems.set(sourceOf(event), event.error.clientMessage)
      else state.hookProblems.delete(sourceOf(event))
      changed()
    },
  }
  if (settings.tunnel !== undefined) closing.use(await startTunnels(parts, settings.tunnel))
  if (app || hooks) {
    const { runApp, startHooks } = await import('./hooks.js')
    const running = app && runApp({ ...parts, stop: stop.signal }, app, hooks?.catchUp === true)
    closing.defer(async () => {
      stop.abort()
      await running
    })
    if (hooks) closing.use(startHooks(parts, hooks))
  }
  return closing.move()
}

/** @throws RelayError `unavailable` until it is known what runs, which is before anything is answered */
function status({ options, record, settings, relay, ...state }: State): InstanceStatus {
  if (!record || !settings || !relay) throw new RelayError('unavailable', 'relay is starting')
  const hooks = options.hooks?.repos.map(({ owner, repo }) => `${owner}/${repo}`) ?? []
  const { routing } = relay
  const { startedAt, tunnels, hasSandbox: sandbox = false } = state
  const own = { record, startedAt, settings, sandbox, routing, tunnels: tunnels.values(), hooks }
  return statusOf({ ...own, ...options.shown })
}

function targetsOf({ relay, dispatcher, duties }: State): readonly TargetStatus[] {
  if (dispatcher) return dispatcher.status()
  const state = duties?.isOurs === false ? 'elsewhere' : 'up'
  const ids = new Set(relay?.routing.routes.map(({ id }) => id))
  return [...ids].map((id) => ({ id, label: labelOf(id), state, queued: 0 }))
}

function relayOptions(state: State, ready: ReadyCheck): PartOptions {
  const { options } = state
  return {
    ...options,
    prove: (challenge) => state.record && prove(state.record, challenge),
    status: () => status(state),
    ready,
    running: {
      sandbox: () => state.hasSandbox === true,
      startedAt: () => state.startedAt,
      targets: () => targetsOf(state),
      tunnels: () => [...state.tunnels.values()],
      hookProblems: () => state.hookProblems,
      forward: () => void state.dispatcher?.refresh(),
    },
    // The caller's comes last, since it may change what it is given.
    onDelivery: (delivery, receipt) => {
      // Where it came before, some targets have it waiting already.
      if (receipt.duplicate) void state.dispatcher?.refresh()
      else if (receipt.targets.length > 0) state.dispatcher?.enqueue(receipt.targets)
      if (!receipt.duplicate) state.maintenance?.added(sizeOf(delivery.body, delivery.headers))
      options.onDelivery?.(delivery, receipt)
    },
  }
}

/** Bytes of a delivery's or an attempt's row besides body and headers: about what SQLite needs. */
const ROW = 512

/** About how many bytes a delivery, or an attempt with its answer, adds to the journal. */
function sizeOf(body: Uint8Array, headers: readonly Header[] = []): number {
  return headers.reduce((sum, [name, value]) => sum + name.length + value.length, body.byteLength + ROW)
}
