import { stripVTControlCharacters } from 'node:util'
import { createLogThrottle, type LogThrottle } from '../../../base/log.js'
import { MAX_START } from '../../../base/bytes.js'
import type { AttemptEvent, TargetStatus } from '../../../dispatch/dispatcher.js'
import { isCommand, type Routing, shortNames } from '../../../dispatch/routes.js'
import { type Attempt, type Delivery, editedFrom, ignoredText, type Receipt } from '../../../journal/types.js'
import { type HookEvent, sourceOf } from '../../../serve/hook-event.js'
import type { ServeOptions } from '../../../serve/serve.js'
import type { TunnelStatus } from '../../../tunnel/tunnel.js'
import {
  appHookText,
  ASK_AGAIN,
  attemptFields,
  attemptText,
  caughtUpText,
  deliveryFields,
  eventName,
  failedObject,
  hookStateText,
  placeName,
} from '../../output/deliveries.js'
import { type Output, TIMED_INDENT } from '../../output/output.js'
import { bold, dim, green, join, red, t, type Text, textOf, yellow } from '../../output/text.js'
import { timeOfDay } from '../../output/time.js'

/** What happens while `serve` runs. */
export type ServeEvent =
  | { readonly type: 'delivery'; readonly delivery: Delivery; readonly receipt: Receipt }
  | ({ readonly type: 'attempt' } & AttemptEvent)
  | {
      readonly type: 'target'
      readonly status: TargetStatus
      /** Why the last attempt failed. */
      readonly error?: string | undefined
      /** Deliveries that waited, for a target that is back. */
      readonly waited?: number | undefined
    }
  | { readonly type: 'tunnel'; readonly status: TunnelStatus; readonly before?: TunnelStatus | undefined }
  | { readonly type: 'hook'; readonly event: HookEvent }

/** What is known of the targets. */
export interface Names {
  /** The short name of a target. */
  readonly nameOf: (id: string) => string
  /** The state of a target, if it is not up. */
  readonly stateOf: (id: string) => TargetStatus['state'] | undefined
  readonly hasRoutes: boolean
}

export interface Described {
  readonly level: 'info' | 'warn'
  readonly text: Text
  readonly object: Readonly<Record<string, unknown>>
}

/** An event for people and for programs: the line of the terminal and the log, and the object of `--json`. */
export function describe(event: ServeEvent, names: Names, now: number): Described {
  if (event.type === 'delivery') return describeDelivery(event.delivery, event.receipt, names)
  if (event.type === 'attempt') return describeAttempt(event, names)
  if (event.type === 'target') return describeTarget(event, names, now)
  if (event.type === 'tunnel') return describeTunnel(event, now)
  const level = isProblem(event.event) ? 'warn' : 'info'
  return { level, text: textOf(hookText(event.event)), object: hookObject(event.event) }
}

/** `#7  push  octo/demo  main  no route` */
function describeDelivery(delivery: Delivery, receipt: Receipt, names: Names): Described {
  const { n, duplicate, ignoredBy = null } = receipt
  const note = noteOf(delivery, receipt, names)
  const parts = [`#${n}`, bold(eventName(delivery)), placeName(delivery), yellow(note)]
  return {
    level: 'info',
    text: join(
      parts.filter((part) => String(part) !== ''),
      '  ',
    ),
    object: { type: 'delivery', n, ...deliveryFields(delivery), duplicate, ignoredBy },
  }
}

/** What is special about a delivery, in a few words; empty for most. */
function noteOf(
  delivery: Delivery,
  { duplicate, targets, ignoredBy }: Receipt,
  { nameOf, stateOf, hasRoutes }: Names,
): string {
  const down = targets.filter((id) => stateOf(id) === 'down')
  const from = editedFrom(delivery)
  const notes = [
    ...(duplicate ? [`duplicate, delivery ${delivery.deliveryId}`] : []),
    ...(from === undefined ? [] : [`edited copy of #${from}`]),
    ...(ignoredBy === undefined ? [] : [ignoredText(ignoredBy)]),
    ...(targets.length === 0 && ignoredBy === undefined && hasRoutes && !duplicate ? ['no route'] : []),
    ...(down.length > 0 ? [`waits for ${down.map(nameOf).join(', ')}`] : []),
    ...(targets.some((id) => stateOf(id) === 'elsewhere') ? ['forwarded by another relay'] : []),
  ]
  return notes.join(', ')
}

/** `#7  → app ✓ 202 38ms` */
function describeAttempt(
  { n, entry, route, attempt, forward, retryAt }: AttemptEvent,
  names: Names,
): Described {
  const name = names.nameOf(route.id)
  const { event, action, repo, number, ref = null, deliveryId } = entry
  return {
    level: forward.status === 'failed' ? 'warn' : 'info',
    text: t`#${n}  → ${name} ${attemptText(forward, attempt, retryAt)}`,
    object: {
      type: 'attempt',
      n,
      ...attemptFields(attempt, route.label),
      event,
      action,
      repo,
      number,
      ref,
      state: forward.status,
      reason: forward.reason ?? null,
      retryAt: isoTime(retryAt),
      name,
      delivery: deliveryId,
    },
  }
}

/** `app is down: connection refused; 3 waiting, next try in 2s`, `app is back: forwarding 3 deliveries that waited` */
function describeTarget(
  { status, error, waited = 0 }: Extract<ServeEvent, { type: 'target' }>,
  { nameOf }: Names,
  now: number,
): Described {
  const { id, label, state, queued, since, nextProbeAt } = status
  const name = nameOf(id)
  const object = {
    type: 'target',
    target: label,
    state,
    queued,
    since: isoTime(since),
    nextTryAt: isoTime(nextProbeAt),
    name,
  }
  if (state === 'elsewhere')
    return { level: 'info', text: t`${name} is forwarded to by another relay`, object }
  if (state === 'up') {
    const backlog =
      waited === 0 ? '' : `: forwarding ${waited === 1 ? '1 delivery' : `${waited} deliveries`} that waited`
    return { level: 'info', text: t`${name} ${green('is back')}${backlog}`, object }
  }
  if (state === 'gone') {
    const full = label === name ? '' : ` (${label})`
    const text = t`${name} ${yellow('is no longer configured')}${full}: ${queued} waiting, 24 h at most`
    return { level: 'warn', text, object }
  }
  const next = nextProbeAt === undefined ? '' : `, next try in ${secondsUntil(nextProbeAt, now)}s`
  const why = error === undefined ? '' : `${error}; `
  return { level: 'warn', text: t`${name} ${red('is down')}: ${why}${queued} waiting${next}`, object }
}

/** `tunnel connected: payload URL https://smee.io/…`, `tunnel is down: connection refused; attempt 2 in 4s` */
function describeTunnel({ status, before }: Extract<ServeEvent, { type: 'tunnel' }>, now: number): Described {
  const { state, url, why, attempt, retryAt, roundTrip, since } = status
  const object = { type: 'tunnel', ...status, since: isoTime(since), retryAt: isoTime(retryAt ?? undefined) }
  if (state === 'connecting') return { level: 'info', text: t`tunnel connecting`, object }
  if (state === 'waiting') {
    const next =
      (retryAt ?? now) > now ? `attempt ${attempt} in ${secondsUntil(retryAt ?? now, now)}s` : 'reconnecting'
    // A later line need not repeat it.
    const isNew = url !== null && (before?.url !== url || before.state === 'connecting')
    const payloadUrl = isNew ? `; payload URL ${url}` : ''
    return { level: 'warn', text: t`tunnel ${red('is down')}: ${why ?? ''}; ${next}${payloadUrl}`, object }
  }
  if (before?.state !== 'connected' || roundTrip === null)
    return { level: 'info', text: t`tunnel ${green('connected')}: payload URL ${url ?? ''}`, object }
  if (roundTrip === 'ok')
    return {
      level: 'info',
      text: t`tunnel ${green('works')}: a test message came back byte for byte`,
      object,
    }
  return {
    level: 'info',
    text: t`tunnel ${yellow('does not work')}: a test message was lost: ${roundTrip}`,
    object,
  }
}

function secondsUntil(at: number, now: number): number {
  return Math.max(1, Math.round((at - now) / 1000))
}

function isoTime(at: number | undefined): string | null {
  return at === undefined ? null : new Date(at).toISOString()
}

/** Whether the user has to know, also under `--quiet`. */
function isProblem(event: HookEvent): boolean {
  if (event.state === 'caught up') return event.result.failed.length > 0
  return ['failed', 'left', 'not caught up'].includes(event.state)
}

function hookText(event: HookEvent): string {
  const { state } = event
  const source = sourceOf(event)
  if (state === 'ready') return hookStateText(source, event.hook)
  if (state === 'leads here') return appHookText(source, event)
  if (state === 'missing') return `catching up with ${source}: ${event.count} missing`
  if (state === 'caught up')
    return caughtUpText(source, event.result) + (isProblem(event) ? `. ${ASK_AGAIN}` : '')
  if (state === 'removed') return `hook of ${source} removed`
  if (state === 'kept')
    return `the hook of ${source} stays, so that --catch-up gets what is sent meanwhile. Remove it with relay hook remove ${source}`
  const why = event.error.message
  if (state === 'left')
    return `the hook of ${source} could not be removed: ${why}. The next serve --hook uses it again, and relay hook remove ${source} removes it`
  const yet = event.retries ? ' yet' : ''
  if (state === 'not caught up') return `could not catch up with ${source}${yet}: ${why}`
  const what = 'app' in event ? `the webhook of ${source} does not lead here` : `no hook of ${source}`
  return `${what}${yet}: ${why}`
}

function hookObject(event: HookEvent): Record<string, unknown> {
  const { state } = event
  const common = { type: 'hook', ...('app' in event ? { app: event.app } : { repo: event.repo }), state }
  if (state === 'ready') {
    const { hook, created, repaired, found, permanent } = event.hook
    return { ...common, id: hook.id, url: hook.url, created, repaired, found, permanent }
  }
  if (state === 'failed' || state === 'not caught up')
    return { ...common, error: event.error.message, retries: event.retries }
  if (state === 'leads here') return { ...common, url: event.url, repaired: event.repaired }
  if (state === 'missing') return { ...common, missing: event.count }
  if (state === 'caught up') {
    const { missing, arrived, failed } = event.result
    return { ...common, missing, arrived, failed: failed.map(failedObject) }
  }
  return 'url' in event ? { ...common, url: event.url } : { ...common, error: event.error.message }
}

/** Enough to see what a command did; `relay show` has the rest. */
const MAX_LINES = 8

/** What a command printed, for below the line of its attempt: `deploy.sh │ done`. */
export function outputLines(name: string, answer: Uint8Array): Text[] {
  const lines = stripVTControlCharacters(Buffer.from(answer).toString())
    .split('\n')
    // A progress display writes each state over the one before.
    .map((line) => line.trimEnd().split('\r').at(-1) ?? '')
  while (lines.at(-1) === '') lines.pop()
  const start = t`${' '.repeat(TIMED_INDENT)}${dim(`${name} │ `)}`
  const shown = lines.slice(0, MAX_LINES).map((line) => t`${start}${line}`)
  const hidden = lines.length - shown.length
  const isCut = answer.length >= MAX_START
  if (hidden === 0 && !isCut) return shown
  return [...shown, t`${start}${dim(isCut ? '… more' : `… ${hidden} more line${hidden === 1 ? '' : 's'}`)}`]
}

type Observers = {
  readonly [Name in 'onDelivery' | 'onAttempt' | 'onTarget' | 'onTunnel' | 'onHook']: NonNullable<
    ServeOptions[Name]
  >
}

/**
 * Prints what happens while `serve` runs: on standard error as lines, or as JSON with `--log-format json`; and under `--json` every
 * event as an object on standard output.
 */
export class LiveOutput {
  /** What {@link ServeOptions} takes. */
  readonly observers: Observers = {
    onDelivery: (delivery, receipt) => this.#report({ type: 'delivery', delivery, receipt }),
    onAttempt: (event) => this.#attempted(event),
    onTarget: (status) => this.#changed(status),
    onTunnel: (status) => this.#tunnelled(status),
    onHook: (event) => this.#report({ type: 'hook', event }),
  }
  readonly #out: Output
  readonly #json: boolean
  readonly #throttle: LogThrottle
  readonly #states = new Map<string, TargetStatus['state']>()
  readonly #last = new Map<string, Pick<Attempt, 'outcome' | 'error'>>()
  readonly #connected = new AbortController()
  #names: ReadonlyMap<string, string> = new Map()
  #hasRoutes = false
  #tunnel: TunnelStatus | undefined

  constructor(out: Output, routes: Pick<Routing, 'routes'>, { json }: { readonly json: boolean }) {
    this.#out = out
    this.#json = json
    this.#throttle = createLogThrottle(out.timedLog)
    this.setRoutes(routes)
  }

  /** Names the targets from now on. */
  setRoutes({ routes }: Pick<Routing, 'routes'>): void {
    this.#names = shortNames(routes)
    this.#hasRoutes = routes.length > 0
  }

  /** The short name of a target. */
  nameOf(id: string): string {
    return this.#names.get(id) ?? shortNames([{ id }]).get(id) ?? id
  }

  /** The tunnel's payload URL, once there is one. */
  get tunnelUrl(): string | undefined {
    return this.#tunnel?.url ?? undefined
  }

  /** Aborts once there is one. */
  get hasTunnelUrl(): AbortSignal {
    return this.#connected.signal
  }

  #attempted(event: AttemptEvent): void {
    const { route, attempt } = event
    this.#last.set(route.id, attempt)
    // The line that says that the target is down stands for the probes.
    const isProbe = attempt.outcome === 'unreachable' && this.#states.get(route.id) === 'down'
    this.#report({ type: 'attempt', ...event }, !isProbe)
    const out = this.#out
    if (out.quiet || out.jsonLog || !isCommand(route.id)) return
    for (const line of outputLines(this.nameOf(route.id), attempt.answer)) out.say(line.cut(out.messageWidth))
  }

  #changed(status: TargetStatus): void {
    const { id, state, queued } = status
    const before = this.#states.get(id)
    const last = this.#last.get(id)
    if (state === 'up') this.#states.delete(id)
    else this.#states.set(id, state)
    // The log says what passes from one relay to another.
    const passes = state === 'elsewhere' || (state === 'up' && (before ?? 'elsewhere') === 'elsewhere')
    // The delivery that was answered first is no longer queued, unless it must be sent again.
    const isAnswered = before === 'down' && last?.outcome !== 'retry'
    const waited = queued + (isAnswered ? 1 : 0)
    const error = last?.error ?? undefined
    this.#report({ type: 'target', status, error, waited }, !passes || this.#out.jsonLog !== undefined)
  }

  #tunnelled(status: TunnelStatus): void {
    const before = this.#tunnel
    this.#tunnel = status
    this.#report({ type: 'tunnel', status, before }, isTunnelNews(status, before))
    if (status.url !== null) this.#connected.abort()
  }

  /** `isShown` says whether the event is worth a line; a program gets every one as an object. */
  #report(event: ServeEvent, isShown = true): void {
    const out = this.#out
    const isQuiet = out.quiet && event.type !== 'hook'
    if (!this.#json && (isQuiet || !isShown)) return
    const now = Date.now()
    const names = {
      nameOf: (id: string) => this.nameOf(id),
      stateOf: (id: string) => this.#states.get(id),
      hasRoutes: this.#hasRoutes,
    }
    const { level, text, object } = describe(event, names, now)
    if (this.#json) out.object(object)
    if (isQuiet || !isShown || (out.quiet && level === 'info')) return
    const print = (): void => {
      if (out.jsonLog) out.jsonLog.event(level, text.toString(), object)
      else if (event.type === 'hook') out.timedLog[level](text.toString())
      else out.say(t`${dim(timeOfDay(now))}  ${text}`, TIMED_INDENT)
    }
    // Anybody who knows the tunnel's channel can send copies.
    if (event.type === 'delivery' && event.receipt.duplicate && event.receipt.targets.length === 0)
      this.#throttle('a duplicate', print, 'info')
    else print()
  }
}

/** The first attempts to reconnect, which are all printed. Later ones follow at equal intervals. */
const FREQUENT = 8
/** Then one of this many is printed, about every ten minutes, unless the reason changes. */
const INTERVAL = 10

function isTunnelNews({ state, attempt, why }: TunnelStatus, before: TunnelStatus | undefined): boolean {
  if (state === 'connecting') return false
  return state !== 'waiting' || attempt <= FREQUENT || attempt % INTERVAL === 0 || why !== before?.why
}
