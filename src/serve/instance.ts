import { renewToken } from '../auth/renew.js'
import { type Cancellable, createCached } from '../base/wait.js'
import type { Seams } from '../base/seams.js'
import type { ReadLiveSettings, ReadSettings } from '../base/settings.js'
import { type Core, ownHostCheck, servicePartsOf, type SignIn, signInAt, sourcesOf } from '../core.js'
import type { DispatcherOptions } from '../dispatch/dispatcher.js'
import { labelOf, type LiveRoutes, liveRoutes, Routing } from '../dispatch/routes.js'
import type { TargetStatus } from '../dispatch/target.js'
import type { EventListener, RelayEvent } from '../events/events.js'
import type { Activity, Reloaded, ServedSource } from '../events/status.js'
import type { FetchHandler } from '../http/listen.js'
import type { Inspector } from '../inspector/inspector.js'
import {
  type InstanceRecord,
  type InstanceStatus,
  prove,
  type Topic,
  type TunnelStatus,
} from '../instance/protocol.js'
import type { Sandbox } from '../sandbox/sandbox.js'
import { createApp, ReplaceableApp } from '../server/app.js'
import { ChangeStreams } from '../server/changes.js'
import type { ReadyCheck, ServedInstance } from '../server/parts.js'
import type { TokenOwner } from '../tokens/tokens.js'
import { SOURCES_CHANGED } from '../webhook/profile-secret.js'
import { pathOf } from '../webhook/signature.js'
import { digestOf, Duties } from './duties.js'
import type { HookPlan } from './hooks.js'
import { statusOf, type StatusParts } from './status.js'
import { checkTunnel } from './tunnel.js'
import { Work, type WorkOptions } from './work.js'

/** Settings that were read again. */
export interface Reread {
  readonly settings: ReadLiveSettings
  /** As `Reloaded` has them. */
  readonly restart: readonly string[]
  readonly warnings: readonly string[]
}

export interface InstanceOptions {
  readonly core: Core
  /** The address that it listens on. */
  readonly url: string
  /** Its record, with the key by which it proves itself. */
  readonly record: InstanceRecord
  /** The code host that it has started. Undefined: the settings' own. */
  readonly sandbox: Sandbox | undefined
  /** Rejects while it cannot take deliveries. */
  readonly ready: ReadyCheck
  /** The environment of commands that receive deliveries. */
  readonly env: DispatcherOptions['env']
  readonly hooks: HookPlan | undefined
  /** Reads the settings again. Undefined: they are a program's, which replaces them itself. @throws RelayError `settings` */
  readonly reread: (() => Promise<Reread>) | undefined
  readonly seams: Seams
  /** When it started. Milliseconds since 1970-01-01 UTC. */
  readonly startedAt: number
  /** What the command line alone knows, for its status. */
  readonly shown: Pick<StatusParts, 'folderHost' | 'hasMadeSecret'>
}

/** How long a reload waits for the channels of new sources: creating one takes about half a second. Milliseconds. */
const CHANNEL_LIMIT_MS = 3000

/**
 * What runs of a relay: the service at its address, and, while it has the turn, forwarding, tunnels and hooks. All is made of its core,
 * which has no part of it; what happens is announced through the core's events.
 */
export class Instance implements ServedInstance {
  readonly core: Core
  readonly url: string
  readonly record: InstanceRecord
  readonly sandbox: Sandbox | undefined
  /** The HTTP application, made again when the sources change. */
  readonly app: ReplaceableApp
  /** Where the commands of the profile follow what changes. */
  readonly changes: ChangeStreams
  /** Loads the inspector; undefined where it is off. */
  readonly inspector: (() => Promise<Inspector>) | undefined
  readonly #options: InstanceOptions
  readonly #signIn: SignIn
  readonly #duties: Duties<Work>
  readonly #metrics: { readonly fetch: FetchHandler } | undefined
  readonly #stopping = new AbortController()
  #settings: ReadSettings
  /** The last entry that was looked for after a notice. */
  #newest = -1
  /** Another relay forwards, and that was reported. */
  #isElsewhere = false
  /** Reloads follow each other. */
  #reloaded: Promise<unknown> = Promise.resolve()

  constructor(options: InstanceOptions) {
    const { core, url, record, sandbox, ready, env, hooks, seams } = options
    const { settings, log, routing, metrics } = core
    this.core = core
    this.url = url
    this.record = record
    this.sandbox = sandbox
    this.#options = options
    this.#settings = settings
    this.#signIn = signInAt(core, url)
    const hasSuccessor = (): Promise<boolean> => this.#duties.hasOthers()
    const owner = (userId: string, cancellable?: Cancellable) => this.owner(userId, cancellable)
    const replaced = { monotonic: seams.clock, random: seams.random }
    const work: WorkOptions = { core, url, env, hooks, owner, hasSuccessor, ...replaced }
    this.#duties = new Duties({
      begin: (turn) => new Work(work, turn),
      routes: digestOf(routing, settings),
      onNotice: (numbers) => void this.#look(numbers).catch(() => {}),
      onTurn: () => this.#onTurn(),
      log,
    })
    this.changes = new ChangeStreams(this.#stopping.signal)
    this.subscribe((event) => {
      const topic = topicOf(event)
      if (topic) this.changes.changed(topic)
    })
    this.#metrics = metrics?.serve({ ...core, instance: this, ready, hostAllowed: ownHostCheck(settings) })
    this.inspector =
      settings.inspect === false ? undefined : createCached(Infinity, () => this.#loadInspector())
    this.app = new ReplaceableApp(this.appAt(url))
  }

  /** The settings that count now. */
  get settings(): ReadSettings {
    return this.#settings
  }

  /** Joins the other relays of a shared profile. @throws RelayError `settings` when they have other routes; `storage` */
  async join(): Promise<void> {
    const { shared } = this.core.database
    if (shared) await this.#duties.join(shared)
  }

  /** Forwards, tunnels and keeps hooks from now on, while no other relay does. @throws RelayError `storage` */
  async run(): Promise<void> {
    await this.#duties.run()
  }

  /** Ends the streams of open inspectors, and what makes deliveries come: before the listener, which answers what that sends. */
  async stopReceiving(): Promise<void> {
    this.#stopping.abort()
    await this.#duties.work?.stopReceiving()
  }

  /** Ends what runs; another relay of the profile may begin. To be called once nothing comes in any more. */
  async end(): Promise<void> {
    try {
      await this.#duties[Symbol.asyncDispose]()
    } finally {
      await this.core.journal.flush()
    }
  }

  /** The HTTP application of the sources that there are now, for an address that it is reached at. */
  appAt(address: string): ReturnType<typeof createApp> {
    const { core, inspector, url } = this
    const signIn = address === url ? this.#signIn : signInAt(core, address)
    const parts = servicePartsOf(core, address, signIn)
    const { ready } = this.#options
    return createApp({ ...parts, ready, instance: this, inspector, metrics: this.#metrics })
  }

  prove(text: string): string {
    return prove(this.record, text)
  }

  status(): InstanceStatus {
    const { record, settings, sandbox, core } = this
    const { startedAt, hooks, shown } = this.#options
    return statusOf({
      record,
      startedAt,
      settings,
      sandbox: sandbox !== undefined,
      routing: core.routing,
      tunnels: this.#duties.work?.tunnels() ?? [],
      hooks: hooks?.repos.map(({ owner, repo }) => `${owner}/${repo}`) ?? [],
      ...shown,
    })
  }

  activity(): Activity {
    const work = this.#duties.work
    return {
      startedAt: this.#options.startedAt,
      sandbox: this.sandbox !== undefined,
      targets: this.targets(),
      tunnels: work?.tunnels() ?? [],
      hookProblems: work?.hookProblems() ?? new Map(),
    }
  }

  async routes(): Promise<LiveRoutes> {
    const { routing, journal } = this.core
    return liveRoutes(routing, this.targets(), await journal.counts())
  }

  subscribe(listener: EventListener): Disposable {
    return this.core.events.subscribe(listener)
  }

  targets(): readonly TargetStatus[] {
    const work = this.#duties.work
    if (work) return work.targets()
    const state = this.#duties.isOurs ? 'up' : 'elsewhere'
    const ids = new Set(this.core.routing.routes.map(({ id }) => id))
    return [...ids].map((id) => ({ id, label: labelOf(id), state, queued: 0 }))
  }

  /** Forwards what waits, after forwards were recorded as waiting. */
  forward(): void {
    this.#duties.work?.forward()
  }

  /** Attempts what waits now, instead of after its delay. */
  retryNow(): void {
    this.#duties.work?.retryNow()
  }

  /** The user's token, renewed if it has to be. @throws RelayError as `renewToken` */
  owner(userId: string, options?: Cancellable): Promise<TokenOwner> {
    return renewToken(this.#signIn, userId, options)
  }

  /** @throws RelayError `settings` for an invalid route, or where other relays of the profile have other ones; `storage` */
  async checkRoutes(routes: ReadLiveSettings['routes']): Promise<void> {
    await this.#duties.changeRoutes(digestOf(new Routing(routes), this.#settings))
  }

  async reload(): Promise<Reloaded> {
    return this.#reload({ isAsked: true })
  }

  /** Replaces the routes from now on. @throws RelayError `settings` for an invalid route, with no change */
  replaceRoutes(routes: ReadLiveSettings['routes']): void {
    this.core.routing.replace(routes)
    this.#settings = { ...this.#settings, routes }
    void this.#duties.work?.replace()
    this.core.events.emit({ type: 'turn' })
  }

  /** One after the other. `isAsked`: it is announced also if nothing has changed. */
  #reload({ isAsked }: { readonly isAsked: boolean }): Promise<Reloaded> {
    const { core } = this
    const reload = async (): Promise<Reloaded> => {
      try {
        const unchanged = { settings: this.#settings, restart: [], warnings: [] }
        const read = (await this.#options.reread?.()) ?? unchanged
        const reloaded = await this.#replaceSettings(read)
        const isNews = reloaded.changed.length > 0 || reloaded.removed.length > 0
        if (isAsked || isNews) core.events.emit({ type: 'settings', settings: read.settings, reloaded })
        return reloaded
      } catch (error) {
        core.events.emit({ type: 'settings refused', error })
        throw error
      }
    }
    const reloading = this.#reloaded.then(reload)
    this.#reloaded = reloading.catch(() => {})
    return reloading
  }

  /** Uses other settings from now on: all of them, or none. @throws RelayError `settings` for those that cannot be used; `storage` */
  async #replaceSettings({ settings: next, restart, warnings }: Reread): Promise<Reloaded> {
    const { sources, host, routing } = this.core
    const { webhookSecrets, routes } = next
    // What can fail comes first.
    const all = sourcesOf(next, host)
    checkTunnel({ tunnel: this.#settings.tunnel, sources: next.sources ?? [] })
    await this.checkRoutes(routes)
    routing.replace(routes)
    const { changed, removed } = sources.replace(all)
    this.#settings = { ...this.#settings, webhookSecrets, routes, sources: next.sources }
    this.app.replace(this.appAt(this.url))
    if (changed.includes(host.name)) this.sandbox?.useSecret(webhookSecrets.current)
    const work = this.#duties.work
    await work?.replace()
    const tunnels = (await work?.channels(changed, CHANNEL_LIMIT_MS)) ?? []
    const served = this.#sources(tunnels)
    return { routes: routing.routes.length, sources: served, changed, removed, restart, warnings }
  }

  /** The sources besides the code host. */
  #sources(tunnels: readonly TunnelStatus[]): readonly ServedSource[] {
    const { sources = [], tunnel, publicUrl = this.url } = this.#settings
    return sources.map(({ name, scheme }) => {
      const own = tunnel === undefined ? publicUrl + pathOf(name) : null
      const channel = tunnels.find(({ source }) => source === name)?.url
      return { name, scheme, address: channel ?? own }
    })
  }

  /** Loaded when it is first asked for: without one, relay starts as fast, and takes no more memory. */
  async #loadInspector(): Promise<Inspector> {
    const { createInspector } = await import('../inspector/inspector.js')
    const { core, url } = this
    const { settings, database } = core
    const { maxBody } = settings
    const hostAllowed = ownHostCheck(settings)
    const onCodeUsed = (): void => core.events.emit({ type: 'code used' })
    const own = { url, maxBody, hostAllowed, stopped: this.#stopping.signal, onCodeUsed }
    return createInspector({ ...core, ...own, store: database.store, instance: this })
  }

  /** After a notice of other relays: open inspectors read again what those have changed, and the queues are looked at again. */
  async #look(numbers: readonly number[] | undefined): Promise<void> {
    const { journal, events } = this.core
    this.forward()
    const last = await journal.newest()
    if (numbers?.length !== 0 || last !== this.#newest) events.emit({ type: 'stale' })
    this.#newest = last
    // A break may have swallowed the notice of a command, or of another relay.
    if (numbers?.includes(SOURCES_CHANGED) ?? true) await this.#reload({ isAsked: false })
  }

  #onTurn(): void {
    const { events } = this.core
    events.emit({ type: 'turn' })
    const { isOurs } = this.#duties
    // A relay that has had the turn since its start prints nothing.
    if (isOurs && !this.#isElsewhere) return
    this.#isElsewhere = !isOurs
    for (const target of this.targets()) events.emit({ type: 'target', target })
  }
}

/** Topics of the events that commands follow. The journal announces what deliveries and attempts change. */
const TOPICS: Readonly<Partial<Record<RelayEvent['type'], Topic>>> = {
  changed: 'journal',
  removed: 'journal',
  stale: 'journal',
  target: 'status',
  tunnel: 'status',
  hook: 'status',
  turn: 'status',
  settings: 'status',
  refused: 'status',
  'sign-in ended': 'sign-in',
  'code used': 'inspector',
}

function topicOf({ type }: RelayEvent): Topic | undefined {
  return TOPICS[type]
}
