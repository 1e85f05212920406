import { pathOf } from '../base/source-names.js'
import { renewToken } from '../auth/renew.js'
import { RelayError } from '../base/errors.js'
import { type Cancellable, createCached } from '../base/wait.js'
import type { Seams } from '../base/seams.js'
import type { Secret } from '../base/secret.js'
import type { NamedScheme, ReadLiveSettings, ReadSettings } from '../base/settings.js'
import type { SignIn } from '../auth/parts.js'
import { type Core, servicePartsOf, signInAt, sourcesOf } from '../core.js'
import { ownHostCheck } from '../http/reached.js'
import type { DispatcherOptions } from '../dispatch/lane.js'
import { checkTarget, timeLimitOf } from '../dispatch/open-target.js'
import type { Question } from '../dispatch/http-target.js'
import {
  labelOf,
  type LiveRoutes,
  liveRoutes,
  replyingRoute,
  type Route,
  routesFor,
} from '../dispatch/routes.js'
import { Routing } from '../dispatch/routing.js'
import type { Reply, TargetStatus } from '../dispatch/target.js'
import type { Receipt } from '../journal/types.js'
import type { EventListener, RelayEvent } from '../events/events.js'
import type { Activity, Again, AgainOptions, Reloaded, ServedSource } from '../events/status.js'
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
import { SETTINGS_CHANGED } from '../store/kv.js'
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
/** Time for which relay waits for an answer, where the sender's is unknown: most wait for 3 s or longer. Milliseconds. */
const REPLY_MS = 2500
/** Part of a sender's time that is left for the way there and back. Milliseconds. */
const WAY_MS = 500

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
    for (const route of routing.routes) checkTarget(route, env)
    this.core = core
    this.url = url
    this.record = record
    this.sandbox = sandbox
    this.#options = options
    this.#settings = settings
    this.#signIn = signInAt(core, url)
    const owner = (userId: string, cancellable?: Cancellable) => this.owner(userId, cancellable)
    const { random, background } = seams
    const replaced = { monotonic: seams.clock, random, background }
    const work: WorkOptions = { core, url, env, hooks, owner, answers: this, ...replaced }
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
    this.app = new ReplaceableApp(this.#createApp())
  }

  /** Answers a request that did not come over a connection of relay's own. */
  async respond(request: Request, bindings: object): Promise<Response> {
    return this.app.fetch(request, bindings)
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
      targets: this.targets(),
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

  async forwardAgain(n: number, options: AgainOptions = {}): Promise<Again> {
    const { journal, routing, clock } = this.core
    const { targets: named, which = 'all' } = options
    const since = clock()
    const hasRoutes = routing.routes.length > 0
    const entry = await journal.read(n)
    if (!entry) throw new RelayError('not_found', `There is no #${n}`)
    if (which === 'waiting') {
      const [summary] = await journal.summaries([n])
      const targets = Object.entries(summary?.forwards ?? {}).flatMap(([id, { status }]) =>
        status === 'waiting' ? [id] : [],
      )
      this.#duties.work?.sendNow(n, targets, false)
      return { since, targets, hasRoutes, timeLimit: this.#timeLimitOf(targets) }
    }
    const matching = routesFor(routing.routes, routing.ignore, entry).map(({ id }) => id)
    const wanted = [...new Set(named ?? matching)]
    const targets = await journal.requeue(n, wanted, which === 'failed' ? 'if-failed' : 'always')
    if (!targets) throw new RelayError('not_found', `#${n} was removed meanwhile`)
    this.#duties.work?.sendNow(n, targets, true)
    return { since, targets, hasRoutes, timeLimit: this.#timeLimitOf(targets) }
  }

  /** Longest time limit of an attempt at one of these targets. Null: without a limit. */
  #timeLimitOf(targets: readonly string[]): number | null {
    const { routing, limits } = this.core
    const routes = routing.routes.filter(({ id }) => targets.includes(id))
    const longest = Math.max(0, ...routes.map((route) => timeLimitOf(route, limits)))
    return longest === Infinity ? null : longest
  }

  expectSecret(source: NamedScheme): Secret | undefined {
    const { expected, sources } = this.core
    const isServed =
      sources.has(source.name) || [...expected.values()].some(({ name }) => name === source.name)
    const secret = expected.expect(source)
    // Its address is served from now on, for the handshake alone.
    if (!isServed) {
      this.app.replace(this.#createApp())
      // Tells the hub that the sender waits for an answer.
      void this.#duties.work?.replace().catch(() => {})
    }
    return secret
  }

  replies(source: string): boolean {
    return replyingRoute(this.core.routing.routes, source) !== undefined
  }

  replyWithin(source: string): number | undefined {
    const route = replyingRoute(this.core.routing.routes, source)
    return route && this.#replyTime(route, source)
  }

  async reply(source: string, { n, duplicate, targets }: Receipt): Promise<Reply | undefined> {
    const route = replyingRoute(this.core.routing.routes, source)
    if (!route || duplicate || !targets.includes(route.id)) return undefined
    return this.#duties.work?.reply(n, route, this.#replyTime(route, source))
  }

  async ask(source: string, question: Question): Promise<Reply | undefined> {
    const route = replyingRoute(this.core.routing.routes, source)
    return route && this.#duties.work?.ask(route, question, this.#replyTime(route, source))
  }

  /** Milliseconds for which the sender of a source is let wait for an answer. */
  #replyTime({ reply = true }: Route, source: string): number {
    if (reply !== true) return reply
    const { waits = REPLY_MS + WAY_MS } = this.core.sources.get(source)?.sender ?? {}
    return waits - WAY_MS
  }

  async skip(n: number): Promise<readonly string[]> {
    const { journal, events } = this.core
    const targets = await journal.skip(n)
    for (const target of targets) events.emit({ type: 'skipped', n, target })
    this.forward()
    return targets
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
   * Checks routes before they are used. @throws RelayError `settings` for an invalid route, for one whose target lacks
   * what it needs of this process, or if the routes of another relay differ; `storage`
   */
  async checkRoutes(routes: ReadLiveSettings['routes']): Promise<void> {
    await this.#duties.changeRoutes(digestOf(this.#checked(routes), this.#settings))
  }

  async reload(): Promise<Reloaded> {
    return this.#reload({ isAsked: true })
  }

  /** Replaces the routes from now on. @throws RelayError `settings` for an invalid route, with no change */
  replaceRoutes(routes: ReadLiveSettings['routes']): void {
    this.#checked(routes)
    this.core.routing.replace(routes)
    this.#settings = { ...this.#settings, routes }
    void this.#duties.work?.replace()
    this.core.events.emit({ type: 'turn' })
  }

  /** @throws RelayError `settings` for an invalid route, or a target that lacks what it needs of this process */
  #checked(routes: ReadLiveSettings['routes']): Routing {
    const routing = new Routing(routes)
    for (const route of routing.routes) checkTarget(route, this.#options.env)
    return routing
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
    const { tunnel, hubToken } = this.#settings
    const codeHost = { name: host.source, scheme: host.source, secrets: webhookSecrets }
    await checkTunnel({ tunnel, hubToken, sources: next.sources ?? [], codeHost }, this.core.database.store)
    await this.checkRoutes(routes)
    routing.replace(routes)
    const { changed, removed } = sources.replace(all)
    this.#settings = { ...this.#settings, webhookSecrets, routes, sources: next.sources }
    this.app.replace(this.#createApp())
    if (changed.includes(host.source)) this.sandbox?.useSecret(webhookSecrets.current)
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

  /** Makes the HTTP application of the current sources. */
  #createApp(): ReturnType<typeof createApp> {
    const { core, inspector, url } = this
    const parts = servicePartsOf(core, url, this.#signIn)
    const { ready } = this.#options
    return createApp({ ...parts, ready, instance: this, inspector, metrics: this.#metrics })
  }

  /** Loaded on first use, so that relay starts as fast without it, and takes no more memory. */
  async #loadInspector(): Promise<Inspector> {
    const [{ createInspector }, { createAdditions }] = await Promise.all([
      import('../inspector/inspector.js'),
      import('./additions.js'),
    ])
    const { core, url } = this
    const { settings, database } = core
    const { maxBody } = settings
    const hostAllowed = ownHostCheck(settings)
    const onCodeUsed = (): void => core.events.emit({ type: 'code used' })
    const own = { url, maxBody, hostAllowed, stopped: this.#stopping.signal, onCodeUsed }
    const additions = createAdditions({
      core,
      instance: this,
      readsSettings: this.#options.reread !== undefined,
      stopped: own.stopped,
    })
    return createInspector({ ...core, ...own, store: database.store, instance: this, additions })
  }

  /** Handles a notice of other relays: open inspectors reload the changed entries, and the queues are read again. */
  async #look(numbers: readonly number[] | undefined): Promise<void> {
    const { journal, events } = this.core
    this.forward()
    const last = await journal.newest()
    if (numbers?.length !== 0 || last !== this.#newest) events.emit({ type: 'stale' })
    this.#newest = last
    // Reloads the settings too if the notice may have been lost in a break of the connection.
    if (numbers?.includes(SETTINGS_CHANGED) ?? true) await this.#reload({ isAsked: false })
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
