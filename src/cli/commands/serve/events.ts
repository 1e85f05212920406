import { shownSource } from '../../../base/source-names.js'
import { stripVTControlCharacters } from 'node:util'
import { type AccountChange, accountText, isExpected } from '../../../auth/accounts.js'
import { anywhere, type Command, commandsOf } from '../../../base/command-line.js'
import { createLogThrottle, type LogThrottle } from '../../../base/log.js'
import { toRelayError } from '../../../base/errors.js'
import { MAX_PREFIX } from '../../../base/bytes.js'
import { othersBehind, type TargetStatus } from '../../../dispatch/target.js'
import { targetReason } from '../../../dispatch/waiting.js'
import { isCommand } from '../../../dispatch/routes.js'
import { type AttemptOutcome, editedFrom, ignoredText } from '../../../journal/types.js'
import { type HookEvent, sourceOf } from '../../../events/hook-event.js'
import type { Reloaded } from '../../../events/status.js'
import type { TunnelStatus } from '../../../instance/protocol.js'
import {
  appHookText,
  askAgain,
  attemptText,
  caughtUpText,
  hookStateText,
  pauseText,
  placeName,
  sourcedName,
  UNVERIFIED,
} from '../../output/deliveries.js'
import { type Output, TIMED_INDENT } from '../../output/output.js'
import { bold, dim, green, joined, type Line, red, t, type Text, yellow } from '../../output/text.js'
import type { HandshakeEvent } from '../../../webhook/refusals.js'
import { banner, BANNER_INDENT, bannerObject } from './banner.js'
import { ADDRESS_LATER, type ServeItem } from './items.js'
import { itemObject } from './objects.js'
import type { Running } from './running.js'

/** Types of items whose problems are printed as warnings, even with `--quiet`. */
const PROBLEMS: ReadonlySet<ServeItem['type']> = new Set(['hook', 'account', 'settings', 'settings refused'])

/** An item of one type. */
type Item<Type extends ServeItem['type']> = Extract<ServeItem, { readonly type: Type }>

/** Line of the terminal and of the log about an item. */
interface Report {
  readonly level?: 'info' | 'warn'
  readonly text: Line
  /** False if it is not worth a line. A program gets every event as an object. Default: true. */
  readonly isShown?: boolean
  /** Set for events that anyone can cause: lines of the same kind are counted. */
  readonly kind?: string | undefined
}

/** Prints what happens while `relay serve` runs. @param out output until the settings have named the format */
export async function printServe(items: AsyncIterable<ServeItem>, out: Output): Promise<void> {
  const live = new LiveOutput(out)
  for await (const item of items) live.print(item)
}

/**
 * Prints the items of a running `serve` on standard error: as lines, or as JSON with `--log-format json`. Never waits,
 * since items come faster than a slow terminal reads.
 */
export class LiveOutput {
  #out: Output
  #throttle: LogThrottle
  #command: Command = anywhere
  /** States of targets that are not up. */
  readonly #states = new Map<string, TargetStatus['state']>()
  /** Outcome of the last attempt at each target. */
  readonly #lastOutcomes = new Map<string, AttemptOutcome>()
  /** Tunnel status by source, or by the hub for all of them. */
  readonly #tunnels = new Map<string, ReportedStatus>()

  constructor(out: Output) {
    this.#out = out
    this.#throttle = createLogThrottle(out.timedLog)
  }

  print(item: ServeItem): void {
    switch (item.type) {
      case 'starting':
        return this.#start(item)
      case 'running':
        return this.#printBanner(item.running)
      case 'delivery':
        return this.#report(item, () => this.#ofDelivery(item))
      case 'attempt':
        this.#report(item, () => this.#ofAttempt(item))
        return this.#printOutput(item)
      case 'skipped':
        return this.#report(item, () => ({ text: t`#${item.n}  → ${item.name} ${red('✗')} skipped` }))
      case 'target':
        return this.#report(item, () => this.#ofTarget(item))
      case 'tunnel':
        return this.#report(item, () => this.#ofTunnel(item))
      case 'hook':
        return this.#report(item, () => ofHook(item.hook, this.#command))
      case 'account':
        return this.#report(item, () => ofAccount(item.account))
      case 'handshake':
        return this.#report(item, () => ofHandshake(item.handshake))
      case 'settings':
        this.#report(item, () => ofSettings(item.reloaded))
        return this.#printChanges(item.reloaded)
      case 'settings refused':
        return this.#report(item, () => ofRefusedSettings(item.error))
      case 'message':
        return this.#printMessage(item)
      case 'dropped':
        return this.#out.timedLog.warn(`${item.count} events came faster than they could be printed`)
      // An object for programs; the banner has the addresses.
      case 'listening':
    }
  }

  /** Uses what the settings say about the output. */
  #start({ logFormat, place }: Item<'starting'>): void {
    this.#command = commandsOf(place)
    this.#out = this.#out.withLogFormat(logFormat)
    this.#throttle = createLogThrottle(this.#out.timedLog)
  }

  #printBanner(running: Running): void {
    const out = this.#out
    if (out.jsonLog) out.event('info', 'relay is running', () => bannerObject(running))
    else for (const line of banner(running, this.#command)) out.say(line, BANNER_INDENT)
  }

  #printMessage({ level, text, cause, isTimed = false }: Item<'message'>): void {
    const out = this.#out
    const log = isTimed ? out.timedLog : out.log
    if (level === 'say') out.say(text)
    else if (level === 'error') log.error(String(text), cause)
    else log[level](String(text))
  }

  /** Makes `#7  push  octo/demo  main  no route`. */
  #ofDelivery({ delivery, receipt, targets, hasRoutes }: Item<'delivery'>): Report {
    const held = targets.flatMap(({ name, waitsFor }) => (waitsFor === undefined ? [] : [{ name, waitsFor }]))
    const { n, duplicate, ignoredBy } = receipt
    const from = editedFrom(delivery)
    const place = placeName(delivery)
    const down = targets.filter(({ id }) => this.#isSilent(id)).map(({ name }) => name)
    const isUnrouted = targets.length === 0 && ignoredBy === undefined && !duplicate && hasRoutes
    const notes = [
      delivery.verifiedBy === 'none' && UNVERIFIED,
      duplicate &&
        (place === delivery.deliveryId ? 'duplicate' : `duplicate, delivery ${delivery.deliveryId}`),
      from !== undefined && `edited copy of #${from}`,
      ignoredBy !== undefined && ignoredText(ignoredBy),
      isUnrouted && 'no route',
      down.length > 0 && `waits for ${down.join(', ')}`,
      ...held.map(({ name, waitsFor }) =>
        targets.length > 1 ? `waits at ${name} ${waitsFor}` : `waits ${waitsFor}`,
      ),
      targets.some(({ id }) => this.#states.get(id) === 'elsewhere') && 'forwarded by another relay',
    ].filter(Boolean)
    const parts = [`#${n}`, bold(sourcedName(delivery)), place, yellow(notes.join(', '))]
    const shown = parts.filter((part) => String(part) !== '')
    // Anyone who knows the tunnel's channel can send copies.
    return {
      text: joined(shown, '  '),
      kind: duplicate && targets.length === 0 ? 'a duplicate' : undefined,
    }
  }

  /** True for a target that is down. One that asks to be tried again has not been reported to be back. */
  #isSilent(id: string): boolean {
    return this.#states.get(id) === 'down' && this.#lastOutcomes.get(id) !== 'retry'
  }

  /** Makes `#7  → app ✓ 202 38ms`. */
  #ofAttempt({ attempt: { n, route, attempt, forward, retryAt }, name }: Item<'attempt'>): Report {
    this.#lastOutcomes.set(route.id, attempt.outcome)
    return {
      level: forward.status === 'failed' ? 'warn' : 'info',
      text: t`#${n}  → ${name} ${attemptText(forward, attempt, retryAt)}`,
      // Failed probes are not printed after the line that the target is down.
      isShown: attempt.outcome !== 'unreachable' || this.#states.get(route.id) !== 'down',
    }
  }

  /** Prints what a command has printed. */
  #printOutput({ attempt: { route, attempt }, name }: Item<'attempt'>): void {
    const out = this.#out
    if (out.quiet || out.jsonLog || !isCommand(route.id)) return
    for (const line of outputLines(name, attempt.answer)) out.say(line.cut(out.messageWidth))
  }

  /**
   * Makes `app is down: connection refused; 3 waiting, next try in 2s`, `app is back: forwarding 3 deliveries that
   * waited`, `app: 2 deliveries wait behind #3, tried again in 12s`, `app: #3 is not answered yet`.
   */
  #ofTarget({ target, name }: Item<'target'>): Report {
    const { id, label, state, queued, nextProbeAt, heldBy, slow = [], why } = target
    const before = this.#states.get(id)
    if (state === 'up') this.#states.delete(id)
    else this.#states.set(id, state)
    // The delivery that it has taken first is no longer queued.
    const waited = before === 'down' ? queued + 1 : queued
    const reason = why === undefined || why === '' ? '' : `${why}; `
    const next = nextProbeAt === undefined ? '' : `, next try in ${secondsUntil(nextProbeAt)}s`
    const deliveries = waited === 1 ? '1 delivery' : `${waited} deliveries`
    const full = label === name ? '' : ` (${label})`
    if (state === 'up' && before === undefined && slow.length > 0)
      return { text: slowText(name, target, slow) }
    const isHeld = state === 'up' && before === undefined && heldBy !== undefined
    const held = isHeld ? targetReason(target, Date.now()) : undefined
    if (held !== undefined) {
      const others = othersBehind(target)
      return { text: `${name}: ${others === 1 ? '1 delivery waits' : `${others} deliveries wait`} ${held}` }
    }
    const texts = {
      up: t`${name} ${green('is back')}${waited === 0 ? '' : `: forwarding ${deliveries} that waited`}`,
      down: t`${name} ${red('is down')}: ${reason}${queued} waiting${next}`,
      gone: t`${name} ${yellow('is no longer configured')}${full}: ${queued} waiting, 24 h at most`,
      elsewhere: `${name} is forwarded to by another relay`,
    }
    // The log reports when forwarding passes from one relay to another.
    const passes = state === 'elsewhere' || (state === 'up' && (before ?? 'elsewhere') === 'elsewhere')
    return {
      level: state === 'down' || state === 'gone' ? 'warn' : 'info',
      text: texts[state],
      isShown: !passes || this.#out.jsonLog,
    }
  }

  /**
   * Makes `tunnel connected: payload URL https://smee.io/…`, `tunnel is down: connection refused; attempt 2 in 4s`.
   */
  #ofTunnel({ tunnel, hub }: Item<'tunnel'>): Report {
    const line = hub ?? tunnel.source
    const before = this.#tunnels.get(line)
    const status = hub === undefined ? tunnel : ofAllSources(tunnel, before?.status)
    const isShown = (hub === undefined || isHubNews(status, before?.status)) && isTunnelNews(status, before)
    this.#tunnels.set(line, { status, at: isShown || !before ? Date.now() : before.at })
    return {
      level: status.state === 'waiting' ? 'warn' : 'info',
      text: tunnelText(status, before?.status, hub !== undefined),
      isShown,
    }
  }

  /** Prints a line for each new or removed source, and changes that need a restart. */
  #printChanges({ sources, changed, removed, restart, warnings }: Reloaded): void {
    const out = this.#out
    if (out.jsonLog) return
    for (const { name, address } of sources.filter((source) => changed.includes(source.name)))
      out.say(t`source ${name}: ${bold(address ?? ADDRESS_LATER)}`)
    for (const name of removed) out.say(`source ${name}: removed, its deliveries are refused`)
    for (const text of [...restart, ...warnings]) out.log.warn(text)
  }

  /** Prints the line of an item; with JSON messages, with the fields of its object. With `--quiet` most are not made. */
  #report(item: ServeItem, make: () => Report): void {
    const out = this.#out
    if (out.quiet && !PROBLEMS.has(item.type)) return
    const { level = 'info', text, isShown = true, kind } = make()
    // Problems of hooks and settings, and other accounts, are printed with --quiet, too.
    const isProblem = level === 'warn' && PROBLEMS.has(item.type)
    const isNeeded = isProblem || item.type === 'account'
    if (!isShown || (out.quiet && !isNeeded)) return
    const print = (): void => {
      if (isProblem && !out.jsonLog) out.timedLog.warn(String(text))
      else out.event(level, text, () => itemObject(item) ?? { type: item.type }, isNeeded)
    }
    if (kind === undefined) print()
    else this.#throttle(kind, print, 'info')
  }
}

/** Makes `ada is signed in as octo at https://github.com`, as a warning if another account was signed in before. */
function ofAccount(change: AccountChange): Report {
  return { level: isExpected(change) ? 'info' : 'warn', text: accountText(change) }
}

/** Makes `Reloaded the settings: 2 routes, 1 source`. */
function ofSettings({ routes, sources, changed }: Reloaded): Report {
  const counts = [
    `${routes} routes`,
    ...(sources.length > 0 ? [`${sources.length} ${sources.length === 1 ? 'source' : 'sources'}`] : []),
    ...(changed.some((name) => shownSource(name) === undefined) ? ['another webhook secret'] : []),
  ]
  return { text: `Reloaded the settings: ${counts.join(', ')}; any other change needs a restart` }
}

/** Makes `handshake of zoom: endpoint.url_validation answered 200`. */
function ofHandshake({ source, name, status, reason }: HandshakeEvent): Report {
  const answered = `handshake of ${source}: ${name}${status === null ? '' : ` answered ${status}`}`
  const kind = `handshake of ${source}`
  return reason === null ? { text: answered, kind } : { level: 'warn', text: `${answered}: ${reason}`, kind }
}

function ofRefusedSettings(error: unknown): Report {
  const { message } = toRelayError(error)
  return { level: 'warn', text: `the routes are unchanged: ${message}. So are sources and secrets` }
}

/** Returns the seconds until a time, for a person: at least one. */
function secondsUntil(at: number): number {
  return Math.max(1, Math.round((at - Date.now()) / 1000))
}

/** @param isOfAll true for the connection of a hub, which all sources have */
function tunnelText(
  { source, state, url, why, attempt, retryAt, roundTrip }: TunnelStatus,
  before: TunnelStatus | undefined,
  isOfAll: boolean,
): Line {
  const name = isOfAll || shownSource(source) === undefined ? 'tunnel' : `tunnel of ${source}`
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
    ? t`${name} ${green('works')}: ${isOfAll ? 'an empty test message went through the hub and came back' : 'a test message came back byte for byte'}`
    : t`${name} ${yellow('does not work')}: a test message was lost: ${roundTrip}`
}

/** Says that entries in flight take long. */
function slowText(name: string, { id }: TargetStatus, slow: readonly number[]): string {
  const numbers = slow.map((n) => `#${n}`).join(', ')
  const isOne = slow.length === 1
  if (isCommand(id)) return `${name}: ${numbers} still ${isOne ? 'runs' : 'run'}`
  return `${name}: ${numbers} ${isOne ? 'is' : 'are'} not answered yet`
}

/** Number of first attempts to reconnect that are all printed. */
const FREQUENT = 8
/** Milliseconds after which one of the later attempts is printed, unless the reason changes. */
const INTERVAL_MS = 600_000

/** The last status of a tunnel, and when its last line was printed. Milliseconds since 1970-01-01 UTC. */
interface ReportedStatus {
  readonly status: TunnelStatus
  readonly at: number
}

function isTunnelNews({ state, attempt, why }: TunnelStatus, before: ReportedStatus | undefined): boolean {
  if (state === 'connecting') return false
  if (state !== 'waiting' || attempt <= FREQUENT || !before || why !== before.status.why) return true
  return Date.now() - before.at >= INTERVAL_MS
}

/** The status of a hub's connection, from that of one of its sources. */
function ofAllSources(status: TunnelStatus, before: TunnelStatus | undefined): TunnelStatus {
  const { source, state, url } = status
  // A connection that only begins again, with other sources, has been tested.
  const known = state === before?.state ? before.roundTrip : null
  return {
    ...status,
    url: url === null ? null : `${url.slice(0, -source.length)}<source>`,
    roundTrip: status.roundTrip ?? known,
  }
}

/** True for what neither another source of the hub's connection nor an earlier status of it has said. */
function isHubNews(now: TunnelStatus, before: TunnelStatus | undefined): boolean {
  if (now.state !== before?.state) return true
  if (now.state === 'waiting') return now.why !== before.why || now.attempt !== before.attempt
  return now.roundTrip !== before.roundTrip
}

function ofHook(event: HookEvent, command: Command): Report {
  const source = sourceOf(event)
  switch (event.state) {
    case 'ready': {
      const text = hookStateText(source, event.hook)
      const { paused } = event.hook.hook
      if (!paused) return { text }
      return { level: 'warn', text: `${text}. It ${pauseText(paused, command(`hook test ${source}`))}` }
    }
    case 'leads here':
      return { text: appHookText(source, event) }
    case 'missing':
      return { text: `catching up with ${source}: ${event.count} missing` }
    case 'caught up': {
      const isProblem = event.result.failed.length > 0
      const text = caughtUpText(source, event.result)
      return isProblem ? { level: 'warn', text: `${text}. ${askAgain(command)}` } : { text }
    }
    case 'removed':
      return { text: `hook of ${source} removed` }
    case 'kept':
      return {
        text: `the hook of ${source} stays, so that --catch-up gets what is sent meanwhile. Remove it with ${command(`hook remove ${source}`)}`,
      }
    case 'left':
      return {
        level: 'warn',
        text: `the hook of ${source} could not be removed: ${event.error.message}. The next serve --hook uses it again, and ${command(`hook remove ${source}`)} removes it`,
      }
    case 'failed':
    case 'not caught up':
  }
  const { state, retries, error } = event
  const none = 'app' in event ? `the webhook of ${source} does not lead here` : `no hook of ${source}`
  const what = state === 'failed' ? none : `could not catch up with ${source}`
  return { level: 'warn', text: `${what}${retries ? ' yet' : ''}: ${error.message}` }
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
