import { renewToken } from '../auth/renew.js'
import { type Cancellable, createCached } from '../base/wait.js'
import type { Seams } from '../base/seams.js'
import type { ReadLiveSettings, ReadSettings } from '../base/settings.js'
import type { SignIn } from '../auth/parts.js'
import { type Core, ownHostCheck, servicePartsOf, signInAt, sourcesOf } from '../core.js'
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
import { type CommandLineFacts, instanceStatus } from './status.js'
import { checkTunnel } from './tunnel.js'
import { Work, type WorkOptions } from './work.js'

/** Settings that were read again. */
export interface Reread {
  readonly settings: ReadLiveSettings
  /** As in `Reloaded`. */
  readonly restart: readonly string[]
  readonly warnings: readonly string[]
}

export interface InstanceOptions {
  readonly core: Core
  /** Address that it listens on. */
  readonly url: string
  /** Its record, with the key of its proofs. */
  readonly record: InstanceRecord
  /** The sandbox that it started as its code host. Undefined if the settings name the code host. */
  readonly sandbox: Sandbox | undefined
  /** Rejects while no delivery can be accepted. */
  readonly ready: ReadyCheck
  /** Environment of commands that receive deliveries. */
  readonly env: DispatcherOptions['env']
  readonly hooks: HookPlan | undefined
  /**
   * Reads the settings again. Undefined for an embedding program, which replaces them itself. @throws RelayError
   * `settings`
   */
  readonly reread: (() => Promise<Reread>) | undefined
  readonly seams: Seams
  /** Start time. Milliseconds since 1970-01-01 UTC. */
  readonly startedAt: number
  /** Parts of its status that only the command line knows. */
  readonly shown: CommandLineFacts
}

/** Time that a reload waits for the channels of new sources. Creating one takes about half a second. Milliseconds. */
const CHANNEL_LIMIT_MS = 3000

/**
 * The running part of a relay: the service at its address and, while it has the turn, forwarding, tunnels and hooks. It
 * is made of the core, which does not know it. What happens is announced through the core's events.
 */
export class Instance implements ServedInstance {
  readonly core: Core
  readonly url: string
  readonly record: InstanceRecord
  readonly sandbox: Sandbox | undefined
  /** The HTTP application, made again when the sources change. */
  readonly app: ReplaceableApp
  /** Streams of changes that the commands of the profile follow. */
  readonly changes: ChangeStreams
  /** Loads the inspector. Undefined if it is off. */
  readonly inspector: (() => Promise<Inspector>) | undefined
  readonly #options: InstanceOptions
  readonly #signIn: SignIn
  readonly #duties: Duties<Work>
  readonly #metrics: { readonly fetch: FetchHandler } | undefined
  readonly #stopping = new AbortController()
  #settings: ReadSettings
  /** Newest entry known after the last notice. */
  #newest = -1
  /** True once it was reported that another relay forwards. */
  #isElsewhere = false
  /** Settles when the last reload has ended: reloads run one after the other. */
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

  /** Current settings. */
  get settings(): ReadSettings {
    return this.#settings
  }

  /** Joins the other relays of a shared profile. @throws RelayError `settings` if their routes differ; `storage` */
  async join(): Promise<void> {
    const { shared } = this.core.database
    if (shared) await this.#duties.join(shared)
  }

  /** Forwards, tunnels and keeps hooks from now on, while no other relay does. @throws RelayError `storage` */
  async run(): Promise<void> {
    await this.#duties.run()
  }

  /**
   * Ends the streams of open inspectors, tunnels and hooks. Called before the listener closes, since it still answers
   * their requests.
   */
  async stopReceiving(): Promise<void> {
    this.#stopping.abort()
    await this.#duties.work?.stopReceiving()
  }

  /** Ends the rest, so that another relay of the profile may begin. To be called once no request can arrive. */
  async end(): Promise<void> {
    try {
      await this.#duties[Symbol.asyncDispose]()
    } finally {
      await this.core.journal.flush()
    }
  }

  /** Makes the HTTP application of the current sources, for an address of the relay. */
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
    return instanceStatus({
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

  /** Forwards waiting deliveries, after forwards were stored as waiting. */
  forward(): void {
    this.#duties.work?.forward()
  }

  /** Attempts waiting deliveries now, instead of after their delay. */
  retryNow(): void {
    this.#duties.work?.retryNow()
  }

  /** Returns the user's token, renewed if necessary. @throws RelayError as `renewToken` */
  owner(userId: string, options?: Cancellable): Promise<TokenOwner> {
    return renewToken(this.#signIn, userId, options)
  }

  /**
   * Checks routes before they are used. @throws RelayError `settings` for an invalid route, or if the routes of another
   * relay differ; `storage`
   */
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

  /**
   * Reads and replaces the settings, after any reload that still runs. `isAsked` announces the result even if nothing
   * changed.
   */
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

  /** Replaces all settings, or none. @throws RelayError `settings` if they cannot be used; `storage` */
  async #replaceSettings({ settings: next, restart, warnings }: Reread): Promise<Reloaded> {
    const { sources, host, routing } = this.core
    const { webhookSecrets, routes } = next
    // Everything that can fail comes first.
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

  /** Lists the sources besides the code host. */
  #sources(tunnels: readonly TunnelStatus[]): readonly ServedSource[] {
    const { sources = [], tunnel, publicUrl = this.url } = this.#settings
    return sources.map(({ name, scheme }) => {
      const own = tunnel === undefined ? publicUrl + pathOf(name) : null
      const channel = tunnels.find(({ source }) => source === name)?.url
      return { name, scheme, address: channel ?? own }
    })
  }

  /** Loaded on first use, so that relay starts as fast without it, and takes no more memory. */
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

  /** Handles a notice of other relays: open inspectors reload the changed entries, and the queues are read again. */
  async #look(numbers: readonly number[] | undefined): Promise<void> {
    const { journal, events } = this.core
    this.forward()
    const last = await journal.newest()
    if (numbers?.length !== 0 || last !== this.#newest) events.emit({ type: 'stale' })
    this.#newest = last
    // Reloads the settings too if the notice may have been lost in a break of the connection.
    if (numbers?.includes(SOURCES_CHANGED) ?? true) await this.#reload({ isAsked: false })
  }

  #onTurn(): void {
    const { events } = this.core
    events.emit({ type: 'turn' })
    const { isOurs } = this.#duties
    // A relay that has had the turn since its start reports nothing.
    if (isOurs && !this.#isElsewhere) return
    this.#isElsewhere = !isOurs
    for (const target of this.targets()) events.emit({ type: 'target', target })
  }
}

/** Topics of the events that commands follow. The journal announces the changes of deliveries and attempts. */
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
