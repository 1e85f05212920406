import { stripVTControlCharacters } from 'node:util'
import { type AccountChange, accountText, isExpected } from '../../../auth/accounts.js'
import { aborted } from '../../../base/wait.js'
import { createLogThrottle, type LogThrottle } from '../../../base/log.js'
import { isChannel, isCodeHost, type LiveSettings } from '../../../base/settings.js'
import { toRelayError } from '../../../base/errors.js'
import { MAX_PREFIX } from '../../../base/bytes.js'
import type { AttemptEvent } from '../../../dispatch/dispatcher.js'
import type { TargetStatus } from '../../../dispatch/target.js'
import { isCommand, Routing, shortNames } from '../../../dispatch/routes.js'
import { type Attempt, type Delivery, editedFrom, ignoredText, type Receipt } from '../../../journal/types.js'
import type { RelayEvent } from '../../../events/events.js'
import { type HookEvent, sourceOf } from '../../../events/hook-event.js'
import type { Reloaded } from '../../../events/status.js'
import type { TunnelStatus } from '../../../instance/protocol.js'
import type { PrintingShell } from '../../command.js'
import {
  appHookText,
  askAgain,
  attemptFields,
  attemptText,
  caughtUpText,
  deliveryFields,
  failedObject,
  hookStateText,
  placeName,
  sourcedName,
  UNVERIFIED,
} from '../../output/deliveries.js'
import { type Output, TIMED_INDENT } from '../../output/output.js'
import { bold, dim, green, joined, type Line, red, t, type Text, yellow } from '../../output/text.js'

/** Time that the banner waits for new channels. Creating one takes about half a second. Milliseconds. */
const TUNNEL_LIMIT_MS = 3000

/** Text in place of the address of a tunnel without a channel. */
export const ADDRESS_LATER = 'printed below once the tunnel is connected'

/** Types of events whose problems are printed as warnings, even with `--quiet`. */
const PROBLEMS: ReadonlySet<string> = new Set(['hook', 'account', 'settings'])

type Fields = Readonly<Record<string, unknown>>

/**
 * Report of an event, for people and for programs: the line of the terminal and the log, and the object of `--json`.
 */
interface Report {
  readonly level?: 'info' | 'warn'
  readonly text: Line
  readonly object: { readonly type: string } & Fields
  /** False if it is not worth a line. A program gets every event as an object. Default: true. */
  readonly isShown?: boolean
  /** Set for events that anyone can cause: lines of the same kind are counted. */
  readonly kind?: string | undefined
}

/**
 * Prints the events of a running `serve`: on standard error as lines, or as JSON with `--log-format json`; with
 * `--json` also as objects on standard output.
 */
export class LiveOutput {
  readonly #out: Output
  readonly #json: boolean
  readonly #command: (line: string) => string
  readonly #throttle: LogThrottle
  /** States of targets that are not up. */
  readonly #states = new Map<string, TargetStatus['state']>()
  readonly #last = new Map<string, Pick<Attempt, 'outcome' | 'error'>>()
  #names: ReadonlyMap<string, string> = new Map()
  /** Tunnel status by source. */
  readonly #tunnels = new Map<string, TunnelStatus>()
  #onTunnelUrl = (): void => {}

  /** @param command completes a command line of relay for the profile */
  constructor(
    { out, json }: Pick<PrintingShell, 'out' | 'json'>,
    routes: Pick<Routing, 'routes'>,
    command: (line: string) => string,
  ) {
    this.#out = out
    this.#command = command
    this.#json = json
    this.#throttle = createLogThrottle(out.timedLog)
    this.setRoutes(routes)
  }

  /** Prints an event of the relay. */
  readonly onEvent = (event: RelayEvent): void => {
    switch (event.type) {
      case 'listening':
        if (this.#json) this.#out.object(event)
        return
      case 'delivery':
        return this.onDelivery(event.delivery, event.receipt)
      case 'attempt':
        return this.onAttempt(event.attempt)
      case 'target':
        return this.onTarget(event.target)
      case 'tunnel':
        return this.onTunnel(event.tunnel)
      case 'hook':
        return this.onHook(event.hook)
      case 'account':
        return this.onAccount(event.account)
      case 'settings':
        return this.#onSettings(event.settings, event.reloaded)
      case 'settings refused':
        return this.#onSettingsRefused(event.error)
      // Not printed here: the list of refused requests, the log and the inspector have more details.
      case 'refused':
      case 'sign-in ended':
      case 'code used':
      case 'turn':
      case 'stale':
      case 'changed':
      case 'removed':
    }
  }

  /** Sets the routes whose targets are named. */
  setRoutes({ routes }: Pick<Routing, 'routes'>): void {
    this.#names = shortNames(routes)
  }

  /** Returns the short name of a target. */
  readonly nameOf = (id: string): string => this.#names.get(id) ?? shortNames([{ id }]).get(id) ?? id

  /**
   * Returns the payload URLs of `--tunnel` by source. Waits some seconds for new channels, or until the signal aborts.
   */
  async payloadUrls(
    sources: Iterable<string>,
    { tunnel, signal }: { readonly tunnel: string | undefined; readonly signal: AbortSignal },
  ): Promise<ReadonlyMap<string, string>> {
    const all = [...sources]
    const known = (): [string, string][] =>
      all.flatMap((source) => {
        const url = this.#tunnels.get(source)?.url
        return typeof url === 'string' ? [[source, url]] : []
      })
    const complete = new AbortController()
    this.#onTunnelUrl = () => known().length === all.length && complete.abort()
    this.#onTunnelUrl()
    const ends = [signal, complete.signal, AbortSignal.timeout(TUNNEL_LIMIT_MS)]
    if (tunnel !== undefined && !isChannel(tunnel)) await Promise.race(ends.map(aborted))
    return new Map(known())
  }

  /** Prints `#7  push  octo/demo  main  no route`. */
  readonly onDelivery = (delivery: Delivery, { n, duplicate, targets, ignoredBy }: Receipt): void => {
    const from = editedFrom(delivery)
    const place = placeName(delivery)
    const down = targets.filter((id) => this.#states.get(id) === 'down').map(this.nameOf)
    const isUnrouted = targets.length === 0 && ignoredBy === undefined && !duplicate && this.#names.size > 0
    const notes = [
      delivery.verifiedBy === 'none' && UNVERIFIED,
      duplicate &&
        (place === delivery.deliveryId ? 'duplicate' : `duplicate, delivery ${delivery.deliveryId}`),
      from !== undefined && `edited copy of #${from}`,
      ignoredBy !== undefined && ignoredText(ignoredBy),
      isUnrouted && 'no route',
      down.length > 0 && `waits for ${down.join(', ')}`,
      targets.some((id) => this.#states.get(id) === 'elsewhere') && 'forwarded by another relay',
    ].filter(Boolean)
    const parts = [`#${n}`, bold(sourcedName(delivery)), place, yellow(notes.join(', '))]
    this.#report({
      text: joined(
        parts.filter((part) => String(part) !== ''),
        '  ',
      ),
      object: { type: 'delivery', n, ...deliveryFields(delivery), duplicate, ignoredBy: ignoredBy ?? null },
      // Anyone who knows the tunnel's channel can send copies.
      kind: duplicate && targets.length === 0 ? 'a duplicate' : undefined,
    })
  }

  /** Prints `#7  → app ✓ 202 38ms`. */
  readonly onAttempt = ({ n, entry, route, attempt, forward, retryAt }: AttemptEvent): void => {
    const name = this.nameOf(route.id)
    const { event, action, repo, number, ref = null, deliveryId: delivery } = entry
    const { status: state, reason = null } = forward
    const about = {
      event,
      action,
      repo,
      number,
      ref,
      state,
      reason,
      retryAt: isoTime(retryAt),
      name,
      delivery,
    }
    this.#last.set(route.id, attempt)
    this.#report({
      level: state === 'failed' ? 'warn' : 'info',
      text: t`#${n}  → ${name} ${attemptText(forward, attempt, retryAt)}`,
      object: { type: 'attempt', n, ...attemptFields(attempt, route.label), ...about },
      // Failed probes are not printed after the line that the target is down.
      isShown: attempt.outcome !== 'unreachable' || this.#states.get(route.id) !== 'down',
    })
    const out = this.#out
    if (out.quiet || out.jsonLog || !isCommand(route.id)) return
    for (const line of outputLines(name, attempt.answer)) out.say(line.cut(out.messageWidth))
  }

  /**
   * Prints `app is down: connection refused; 3 waiting, next try in 2s`, `app is back: forwarding 3 deliveries that
   * waited`.
   */
  readonly onTarget = ({ id, label, state, queued, since, nextProbeAt }: TargetStatus): void => {
    const before = this.#states.get(id)
    const last = this.#last.get(id)
    if (state === 'up') this.#states.delete(id)
    else this.#states.set(id, state)
    // The delivery that succeeded first is no longer queued, unless it must be sent again.
    const waited = before === 'down' && last?.outcome !== 'retry' ? queued + 1 : queued
    const name = this.nameOf(id)
    const why = last?.error ? `${last.error}; ` : ''
    const next = nextProbeAt === undefined ? '' : `, next try in ${secondsUntil(nextProbeAt)}s`
    const deliveries = waited === 1 ? '1 delivery' : `${waited} deliveries`
    const full = label === name ? '' : ` (${label})`
    const texts = {
      up: t`${name} ${green('is back')}${waited === 0 ? '' : `: forwarding ${deliveries} that waited`}`,
      down: t`${name} ${red('is down')}: ${why}${queued} waiting${next}`,
      gone: t`${name} ${yellow('is no longer configured')}${full}: ${queued} waiting, 24 h at most`,
      elsewhere: `${name} is forwarded to by another relay`,
    }
    // The log reports when forwarding passes from one relay to another.
    const passes = state === 'elsewhere' || (state === 'up' && (before ?? 'elsewhere') === 'elsewhere')
    const times = { since: isoTime(since), nextTryAt: isoTime(nextProbeAt) }
    this.#report({
      level: state === 'down' || state === 'gone' ? 'warn' : 'info',
      text: texts[state],
      object: { type: 'target', target: label, state, queued, ...times, name },
      isShown: !passes || this.#out.jsonLog,
    })
  }

  /**
   * Prints `tunnel connected: payload URL https://smee.io/…`, `tunnel is down: connection refused; attempt 2 in 4s`.
   */
  readonly onTunnel = (status: TunnelStatus): void => {
    const before = this.#tunnels.get(status.source)
    this.#tunnels.set(status.source, status)
    const times = { since: isoTime(status.since), retryAt: isoTime(status.retryAt) }
    this.#report({
      level: status.state === 'waiting' ? 'warn' : 'info',
      text: tunnelText(status, before),
      object: { type: 'tunnel', ...status, ...times },
      isShown: isTunnelNews(status, before),
    })
    this.#onTunnelUrl()
  }

  readonly onHook = (event: HookEvent): void => {
    const { text, isProblem = false, ...fields } = describeHook(event, this.#command)
    const source = 'app' in event ? { app: event.app } : { repo: event.repo }
    this.#report({
      level: isProblem ? 'warn' : 'info',
      text,
      object: { type: 'hook', ...source, state: event.state, ...fields },
    })
  }

  /** Prints `ada is signed in as octo at https://github.com`, as a warning if another account was signed in before. */
  readonly onAccount = (change: AccountChange): void => {
    const { userId: user, origin, account = null, before = null } = change
    const state = change.account === undefined ? 'signed out' : 'signed in'
    this.#report({
      level: isExpected(change) ? 'info' : 'warn',
      text: accountText(change),
      object: { type: 'account', state, user, origin, account, before },
    })
  }

  /**
   * Prints `Reloaded the settings: 2 routes, 1 source`, a line for each new or removed source, and changes that need a
   * restart.
   */
  #onSettings(settings: LiveSettings, reloaded: Reloaded): void {
    const { routes, sources, changed, removed, restart, warnings } = reloaded
    this.setRoutes(new Routing(settings.routes))
    const counts = [
      `${routes} routes`,
      ...(sources.length > 0 ? [`${sources.length} ${sources.length === 1 ? 'source' : 'sources'}`] : []),
      ...(changed.some(isCodeHost) ? ['another webhook secret'] : []),
    ]
    this.#report({
      text: `Reloaded the settings: ${counts.join(', ')}; any other change needs a restart`,
      object: { type: 'settings', state: 'reloaded', routes, sources, changed, removed, restart },
    })
    if (this.#out.jsonLog) return
    for (const { name, address } of sources.filter((source) => changed.includes(source.name)))
      this.#out.say(t`source ${name}: ${bold(address ?? ADDRESS_LATER)}`)
    for (const name of removed) this.#out.say(`source ${name}: removed, its deliveries are refused`)
    for (const text of [...restart, ...warnings]) this.#out.log.warn(text)
  }

  #onSettingsRefused(thrown: unknown): void {
    const { message, kind } = toRelayError(thrown)
    this.#report({
      level: 'warn',
      text: `the routes are unchanged: ${message}. So are sources and secrets`,
      object: { type: 'settings', state: 'unchanged', code: kind, error: message },
    })
  }

  #report({ level = 'info', text, object, isShown = true, kind }: Report): void {
    const out = this.#out
    if (this.#json) out.object(object)
    // Problems of hooks and settings, and other accounts, are printed with --quiet, too.
    const isProblem = level === 'warn' && PROBLEMS.has(object.type)
    const isNeeded = isProblem || object.type === 'account'
    if (!isShown || (out.quiet && !isNeeded)) return
    const print = (): void => {
      if (isProblem && !out.jsonLog) out.timedLog.warn(String(text))
      else out.event(level, text, object, isNeeded)
    }
    if (kind === undefined) print()
    else this.#throttle(kind, print, 'info')
  }
}

/** Returns the seconds until a time, for a person: at least one. */
function secondsUntil(at: number): number {
  return Math.max(1, Math.round((at - Date.now()) / 1000))
}

function isoTime(at: number | null | undefined): string | null {
  return at === undefined || at === null ? null : new Date(at).toISOString()
}

function tunnelText(
  { source, state, url, why, attempt, retryAt, roundTrip }: TunnelStatus,
  before: TunnelStatus | undefined,
): Line {
  const name = isCodeHost(source) ? 'tunnel' : `tunnel of ${source}`
  if (state === 'connecting') return `${name} connecting`
  if (state === 'waiting') {
    const isLater = retryAt !== null && retryAt > Date.now()
    const next = isLater ? `attempt ${attempt} in ${secondsUntil(retryAt)}s` : 'reconnecting'
    // A later line need not repeat the address.
    const isNew = url !== null && (before?.url !== url || before.state === 'connecting')
    return t`${name} ${red('is down')}: ${why ?? ''}; ${next}${isNew ? `; payload URL ${url}` : ''}`
  }
  if (before?.state !== 'connected' || roundTrip === null)
    return t`${name} ${green('connected')}: payload URL ${url ?? ''}`
  return roundTrip === 'ok'
    ? t`${name} ${green('works')}: a test message came back byte for byte`
    : t`${name} ${yellow('does not work')}: a test message was lost: ${roundTrip}`
}

/** Number of first attempts to reconnect that are all printed. Later ones follow at equal intervals. */
const FREQUENT = 8
/** After that, one of this many is printed, about every ten minutes, unless the reason changes. */
const INTERVAL = 10

function isTunnelNews({ state, attempt, why }: TunnelStatus, before: TunnelStatus | undefined): boolean {
  if (state === 'connecting') return false
  return state !== 'waiting' || attempt <= FREQUENT || attempt % INTERVAL === 0 || why !== before?.why
}

/** Makes the line and the fields of a hook's event. */
function describeHook(
  event: HookEvent,
  command: (line: string) => string,
): Fields & { readonly text: string; readonly isProblem?: boolean } {
  const source = sourceOf(event)
  switch (event.state) {
    case 'ready': {
      const { hook, created, repaired, found, permanent } = event.hook
      const { id, url } = hook
      return { text: hookStateText(source, event.hook), id, url, created, repaired, found, permanent }
    }
    case 'leads here': {
      const { url, repaired } = event
      return { text: appHookText(source, event), url, repaired }
    }
    case 'missing':
      return { text: `catching up with ${source}: ${event.count} missing`, missing: event.count }
    case 'caught up': {
      const { missing, arrived, failed } = event.result
      const isProblem = failed.length > 0
      const text = caughtUpText(source, event.result) + (isProblem ? `. ${askAgain(command)}` : '')
      return { text, isProblem, missing, arrived, failed: failed.map(failedObject) }
    }
    case 'removed':
      return { text: `hook of ${source} removed`, url: event.url }
    case 'kept':
      return {
        text: `the hook of ${source} stays, so that --catch-up gets what is sent meanwhile. Remove it with ${command(`hook remove ${source}`)}`,
        url: event.url,
      }
    case 'left': {
      const error = event.error.message
      const text = `the hook of ${source} could not be removed: ${error}. The next serve --hook uses it again, and ${command(`hook remove ${source}`)} removes it`
      return { text, isProblem: true, error }
    }
    case 'failed':
    case 'not caught up':
  }
  const { state, retries } = event
  const error = event.error.message
  const none = 'app' in event ? `the webhook of ${source} does not lead here` : `no hook of ${source}`
  const what = state === 'failed' ? none : `could not catch up with ${source}`
  return { text: `${what}${retries ? ' yet' : ''}: ${error}`, isProblem: true, error, retries }
}

/** Lines of a command's output that are printed. `relay show` has the rest. */
const MAX_LINES = 8

/** Formats a command's output below the line of its attempt: `deploy.sh │ done`. */
export function outputLines(name: string, answer: Uint8Array): Text[] {
  const lines = stripVTControlCharacters(Buffer.from(answer).toString())
    .split('\n')
    // A progress display overwrites each state with the next.
    .map((line) => line.trimEnd().split('\r').at(-1) ?? '')
  while (lines.at(-1) === '') lines.pop()
  const start = t`${' '.repeat(TIMED_INDENT)}${dim(`${name} │ `)}`
  const shown = lines.slice(0, MAX_LINES).map((line) => t`${start}${line}`)
  const hidden = lines.length - shown.length
  const isCut = answer.length >= MAX_PREFIX
  if (hidden === 0 && !isCut) return shown
  return [...shown, t`${start}${dim(isCut ? '… more' : `… ${hidden} more line${hidden === 1 ? '' : 's'}`)}`]
}
