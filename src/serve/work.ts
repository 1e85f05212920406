import { findOwnApp, type OwnApp } from '../auth/setup.js'
import { Disposal } from '../base/lifetime.js'
import { toRelayError } from '../base/errors.js'
import { aborted, deadline, type Random } from '../base/wait.js'
import { type Clock, monotonicClock } from '../base/time.js'
import type { Core } from '../core.js'
import { Dispatcher } from '../dispatch/dispatcher.js'
import type { DispatcherOptions } from '../dispatch/lane.js'
import type { Question } from '../dispatch/http-target.js'
import { askTarget } from '../dispatch/open-target.js'
import type { Route } from '../dispatch/routes.js'
import type { Reply, TargetStatus } from '../dispatch/target.js'
import type { RelayEvent } from '../events/events.js'
import { sourceOf } from '../events/hook-event.js'
import type { Header } from '../http/headers.js'
import { forwardedRequest } from '../replay/prepare.js'
import type { TunnelStatus } from '../instance/protocol.js'
import type { Turn, TurnWork } from './duties.js'
import type { HookParts, HookPlan } from './hooks.js'
import type { Answers } from './hub-messages.js'
import { startMaintenance } from './maintenance.js'
import { PayloadAddress, Tunnels } from './tunnel.js'

export interface WorkOptions {
  readonly core: Core
  readonly owner: HookParts['owner']
  /** Answers senders whose requests come through a hub. */
  readonly answers: Answers
  /** Address that the instance listens on. */
  readonly url: string
  /** Environment of commands that receive deliveries. */
  readonly env: DispatcherOptions['env']
  /** Hooks to keep, and to catch up from. Undefined for none. */
  readonly hooks: HookPlan | undefined
  /** Clock of waits and random numbers, if a test replaces them. */
  readonly monotonic?: Clock | undefined
  readonly random?: Random | undefined
  /** As of the seams. */
  readonly background?: boolean | undefined
}

/** Work of the relay that has the turn: forwards, tunnels, keeps hooks and removes old deliveries. */
export class Work implements TurnWork {
  readonly #options: WorkOptions
  readonly #turn: Turn
  readonly #dispatcher: Dispatcher
  readonly #tunnels: Tunnels
  readonly #address: PayloadAddress
  /** Tunnel status by source. */
  readonly #tunnelStatus = new Map<string, TunnelStatus>()
  /** Problems by repository or App. */
  readonly #hookProblems = new Map<string, string>()
  /** Ends tunnels and hooks before the listener closes, which still answers their requests. */
  readonly #receiving = new Disposal()
  readonly #closing = new Disposal()

  constructor(options: WorkOptions, turn: Turn) {
    const { core, url } = options
    const { events, settings } = core
    this.#options = options
    this.#turn = turn
    this.#address = new PayloadAddress(settings, url)
    this.#dispatcher = this.#closing.use(createDispatcher(options, turn))
    this.#tunnels = new Tunnels(core, turn.lost, options.answers)
    const subscription = events.subscribe((event) => this.#onEvent(event))
    this.#closing.defer(async () => subscription[Symbol.dispose]())
    this.#receiving.defer(async () => {
      this.#tunnelStatus.clear()
      this.#hookProblems.clear()
      events.emit({ type: 'turn' })
    })
    this.#receiving.use(this.#tunnels)
  }

  async start(): Promise<void> {
    const { core } = this.#options
    const { database, journal, limits, routing, settings, log, events, command } = core
    await this.#dispatcher.start(() => routing.routes)
    const maintenance = startMaintenance({
      database,
      journal,
      retention: settings,
      log,
      warning: (waiting) =>
        `the journal is larger than --keep-max: deliveries that wait for targets are not removed, and there are ${waiting}. Start their targets, or give up waiting deliveries with ${command('skip <n>')}. Once the disk is nearly full, relay answers 503 to new deliveries`,
      interval: limits.sweep,
    })
    this.#closing.use(maintenance)
    const subscription = events.subscribe((event) => maintenance.added(sizeOf(event)))
    this.#closing.defer(async () => subscription[Symbol.dispose]())
    this.#closing.defer(() => this.stopReceiving())
    await this.#startReceiving()
  }

  /** Applies the current settings to targets and tunnels. Resolves once each new tunnel has begun to connect. */
  async replace(): Promise<void> {
    const { routing } = this.#options.core
    this.#dispatcher.replaceRoutes(routing.routes)
    await this.#tunnels.update()
  }

  /** Returns the tunnels once those of `sources` have channels, after at most `limit` milliseconds. */
  async channels(sources: readonly string[], limit: number): Promise<readonly TunnelStatus[]> {
    const { core } = this.#options
    const wanted = core.settings.tunnel === undefined ? [] : sources
    const isComplete = (): boolean =>
      wanted.every((name) => (this.#tunnelStatus.get(name)?.url ?? null) !== null)
    const complete = new AbortController()
    using _ = core.events.subscribe(() => isComplete() && complete.abort())
    if (!isComplete()) await Promise.race([deadline(limit), complete.signal, this.#turn.lost].map(aborted))
    return this.tunnels()
  }

  targets(): readonly TargetStatus[] {
    return this.#dispatcher.status()
  }

  tunnels(): readonly TunnelStatus[] {
    return [...this.#tunnelStatus.values()]
  }

  /** Returns the problems of hooks, by repository or App. */
  hookProblems(): ReadonlyMap<string, string> {
    return this.#hookProblems
  }

  /** Attempts waiting deliveries now, instead of after their delay. */
  retryNow(): void {
    void this.#dispatcher.retryNow()
  }

  /** Reads waiting deliveries from the journal, and forwards them. */
  forward(): void {
    void this.#dispatcher.refresh()
  }

  /** Forwards an entry that waits for these targets now, before all others. `isAgain` as of `Lane.sendNow`. */
  sendNow(n: number, targets: readonly string[], isAgain: boolean): void {
    void this.#dispatcher.sendNow(n, targets, isAgain)
  }

  /**
   * Sends a new entry to the target of a route that replies, and resolves with its answer. Undefined if there is none
   * within these milliseconds.
   */
  async reply(n: number, { id }: Route, within: number): Promise<Reply | undefined> {
    return this.#dispatcher.reply(n, id, AbortSignal.any([deadline(within), this.#turn.lost]))
  }

  /** Passes a question on to the target of a route that replies. As of `askTarget`. */
  async ask(route: Route, question: Question, within: number): Promise<Reply | undefined> {
    return askTarget(route, question, { env: this.#options.env, within, signal: this.#turn.lost })
  }

  /** Ends tunnels and hooks. */
  async stopReceiving(): Promise<void> {
    await this.#receiving[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closing[Symbol.asyncDispose]()
  }

  #onEvent(event: RelayEvent): void {
    if (event.type === 'delivery') {
      const { duplicate, targets } = event.receipt
      // Some targets may already have a repeated delivery waiting.
      if (duplicate) this.forward()
      else if (targets.length > 0) this.#dispatcher.enqueue(targets)
    } else if (event.type === 'tunnel') {
      const { tunnel } = event
      this.#tunnelStatus.set(tunnel.source, tunnel)
      this.#address.noticed(tunnel)
    } else if (event.type === 'hook') {
      const { hook } = event
      if ('error' in hook) this.#hookProblems.set(sourceOf(hook), hook.error.clientMessage)
      else this.#hookProblems.delete(sourceOf(hook))
    }
  }

  /** Starts tunnels and hooks. */
  async #startReceiving(): Promise<void> {
    const { core, hooks, owner } = this.#options
    const stop = new AbortController()
    const app = await this.#findApp(stop.signal)
    const parts: HookParts = { core, owner, address: this.#address, turn: this.#turn }
    await this.#tunnels.update()
    if (!app && !hooks) return
    const { runApp, startHooks } = await import('./hooks.js')
    const running = app && runApp({ ...parts, stop: stop.signal }, app, hooks?.catchUp === true)
    this.#receiving.defer(async () => {
      stop.abort()
      await running
    })
    if (hooks) this.#receiving.use(startHooks(parts, hooks))
  }

  /** Finds the App of the profile. If the keychain fails, relay runs without it. */
  async #findApp(signal: AbortSignal): Promise<OwnApp | undefined> {
    const { database, host, log, command } = this.#options.core
    try {
      return await findOwnApp(database.secrets, host, { signal, command })
    } catch (error) {
      log.warn(`the App of this profile cannot be used: ${toRelayError(error).message}`)
      return undefined
    }
  }
}

function createDispatcher(
  { core, env, monotonic, random, background }: WorkOptions,
  { mayRun }: Turn,
): Dispatcher {
  const { journal, settings, log, sources, clock, limits, events } = core
  return new Dispatcher({
    journal,
    concurrency: settings.concurrency,
    env,
    log,
    mayRun,
    sendable: (entry, { ofFolder = false }) =>
      forwardedRequest(entry, sources.get(entry.provider), clock(), { withToken: !ofFolder }),
    onTarget: (target) => events.emit({ type: 'target', target }),
    onAttempt: (attempt) => events.emit({ type: 'attempt', attempt }),
    clock,
    monotonic: monotonic ?? monotonicClock,
    random,
    limits,
    background,
  })
}

/** Bytes of a delivery's or an attempt's row besides body and headers, roughly as SQLite needs. */
const ROW = 512

/** Estimates the bytes that an event's delivery, or its attempt with the response, added to the journal. */
function sizeOf(event: RelayEvent): number {
  if (event.type === 'attempt') return sizeOfRow(event.attempt.attempt.answer, event.attempt.attempt.headers)
  if (event.type !== 'delivery' || event.receipt.duplicate) return 0
  return sizeOfRow(event.delivery.body, event.delivery.headers)
}

function sizeOfRow(body: Uint8Array, headers: readonly Header[] = []): number {
  return headers.reduce((sum, [name, value]) => sum + name.length + value.length, body.byteLength + ROW)
}
