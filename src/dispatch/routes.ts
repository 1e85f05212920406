import { qualified, shownSource } from '../base/source-names.js'
import { isDeepStrictEqual } from 'node:util'
import { parseUrl } from '../base/address.js'
import { RelayError } from '../base/errors.js'
import { formatDuration, parseDuration } from '../base/time.js'
import { alternatives, eventMatching, type Match, matches, namesSource } from '../journal/filter.js'
import type { ForwardCounts, SourceEvent, VerifiedEvent } from '../journal/types.js'
import {
  bracketed,
  type Condition,
  type ConditionSubject,
  readBracketed,
  skipBracketed,
  DeliveryView,
} from './where.js'
import type { Target, TargetStatus } from './target.js'
import { targetReason } from './waiting.js'

/** How deliveries are sent to a route's target. What is left out follows the settings of all targets. */
export interface RouteOptions {
  /** True for strict order: a delivery that has to be tried again holds up those behind it. Default: false. */
  readonly ordered?: boolean
  /** Attempts at once, from 1. */
  readonly concurrency?: number
  /** Time limit of one attempt in milliseconds. Infinity for none. */
  readonly timeout?: number
  /** Headers for an address, by name. `$NAME` in a value is a variable of the environment, `$$` a `$`. */
  readonly headers?: Readonly<Record<string, string>>
  /** False for an address of this machine whose certificate is not checked. Default: true. */
  readonly verify?: boolean
  /** File of the certificates, in PEM, that sign for an address. Default: those that Node trusts. */
  readonly ca?: string
  /**
   * Milliseconds for which the sender waits for the target's answer; true for as long as it waits. Undefined: it gets 200
   * at once.
   */
  readonly reply?: number | true
}

/** Deliveries that a route accepts. */
interface Accepting {
  readonly match: Match
  /** Conditions. All must hold. */
  readonly where: readonly Condition[]
}

/** Rule that forwards matching deliveries to a target. */
export interface Route extends RouteOptions, Accepting {
  readonly target: Target
  /** Id of the target in the journal: `<match>=<address>` or `<match>=exec:<command>`, as written, with the conditions. */
  readonly id: string
  /** The id on one line, without the match `*`, and without the password and query of an address. */
  readonly label: string
  /** The user's name for the target. It is not part of the id. */
  readonly name?: string
  /** True if only a file of the working folder names the target. */
  readonly ofFolder?: boolean
  /** True if it is not of the settings: the profile stores it. */
  readonly ofProfile?: boolean
}

/** True if deliveries are sent in the same way to the targets of both routes. */
export function sendsAlike(one: Route, other: Route): boolean {
  const how = ({ target, ordered, concurrency, timeout, headers, verify, ca, reply, ofFolder }: Route) => {
    return { target, ordered, concurrency, timeout, headers, verify, ca, reply, ofFolder }
  }
  return isDeepStrictEqual(how(one), how(other))
}

/** True if a route can take deliveries of this source. */
function isOfSource({ match }: Route, source: string): boolean {
  return alternatives(match).some(
    (each) =>
      each.text === ALL ||
      (namesSource(each) ? eventMatching(each).provider === source : shownSource(source) === undefined),
  )
}

/** The route whose target answers the sender of this source. */
export function replyingRoute(routes: readonly Route[], source: string): Route | undefined {
  return routes.find((route) => route.reply !== undefined && isOfSource(route, source))
}

/** Lets the one route of a source answer its sender. @throws RelayError `settings` without a route, or with several */
export function withReply(routes: readonly Route[], { source, reply }: SourceReply): readonly Route[] {
  const own = routes.filter((route) => isOfSource(route, source))
  const [route, other] = own
  if (!route)
    throw new RelayError('settings', `--reply ${source}: no route takes what ${source} sends: add one`)
  if (other)
    throw new RelayError(
      'settings',
      `--reply ${source}: ${route.label} and ${other.label} both take what ${source} sends, and its sender gets one answer: write reply into one of them, in relay.json`,
    )
  return routes.map((each) => (each === route ? { ...each, reply } : each))
}

/** A source whose sender gets the answer of its route's target. `reply` as in a route. */
export interface SourceReply extends Required<Pick<RouteOptions, 'reply'>> {
  readonly source: string
}

/** Reads `--reply slack` or `--reply slack=2500ms`. @throws Error that completes "<name>: …" */
export function readSourceReply(text: string): SourceReply {
  const [, source = '', time] = /^([a-z][a-z\d-]{0,31})(?:=(.+))?$/.exec(text.trim()) ?? []
  if (source === '') throw new Error('must be a source, or a source and a time, such as slack=2500ms')
  return { source, reply: time === undefined ? true : readReplyTime(time) }
}

/** Longest time for an answer: no sender waits longer than 30 s. Milliseconds. */
export const MAX_REPLY_MS = 30_000

/** Reads the time of `reply`, in milliseconds. @throws Error that completes "<name>: …" */
export function readReplyTime(text: string): number {
  const [, written] = /^(\d{1,5})ms$/.exec(text) ?? []
  const ms = written === undefined ? parseDuration(text) : Number(written)
  if (ms !== undefined && ms > 0 && ms <= MAX_REPLY_MS) return ms
  throw new Error('must be true, or a duration such as 2500ms, up to 30s')
}

/** Refuses a second route that answers the same sender. @throws RelayError `settings` */
export function checkReplies(routes: readonly Route[]): void {
  const replying = routes.filter(({ reply }) => reply !== undefined)
  for (const [i, one] of replying.entries())
    for (const other of replying.slice(i + 1)) {
      const sources = [one, other].flatMap(({ match }) =>
        alternatives(match).map((each) => eventMatching(each).provider),
      )
      const shared = sources.find((source) => isOfSource(one, source) && isOfSource(other, source))
      if (shared !== undefined)
        throw new RelayError(
          'settings',
          `The routes ${one.label} and ${other.label} both have reply for ${shownSource(shared) ?? 'the code host'}, and its sender gets one answer: leave reply out of one`,
        )
    }
}

/** Parts of a route that a person writes. */
export interface RouteParts extends RouteOptions, Pick<Route, 'match' | 'target' | 'name'> {
  /** Default: none. */
  readonly where?: readonly Condition[]
}

export function createRoute({ match, where = [], target, ...rest }: RouteParts): Route {
  const written = target.kind === 'http' ? target.url : EXEC + target.command
  const id = `${match.text}${bracketed(where)}=${written}`
  return { match, where, target, id, label: labelOf(id), ...rest }
}

const EXEC = 'exec:'
const ALL = '*'

/** Splits `match=target` at its first `=` that is in no condition. The match of other text is empty. */
export function splitId(id: string): { readonly match: string; readonly target: string } {
  const first = /^[^=[]*/.exec(id)?.[0].length ?? 0
  const behind = skipBracketed(id, first)
  const at = id[behind] === '=' ? behind : id.indexOf('=')
  return { match: id.slice(0, Math.max(0, at)), target: id.slice(at + 1) }
}

/** Label of the target with this id. */
export function labelOf(id: string): string {
  const { match, target } = splitId(id)
  const shown = target.startsWith(EXEC) ? target : asRequested(target)
  return (match === '' || match === ALL ? shown : `${match}=${shown}`).replaceAll(/\s+/g, ' ')
}

/** True if the target with this id is a command. */
export function isCommand(id: string): boolean {
  return splitId(id).target.startsWith(EXEC)
}

/** Formats a target's result: `202`, or `exit 1` for a command. */
export function formatStatus(id: string, status: number): string {
  return isCommand(id) ? `exit ${status}` : String(status)
}

/** The id for other processes: without the password and query of an address, so that two targets can share it. */
export function publicTargetId(id: string): string {
  const label = labelOf(id)
  return id.startsWith(`${ALL}=`) ? `${ALL}=${label}` : label
}

/** Hides user name, password and query. Also accepts text that is not an address, which error messages quote. */
export function withoutSecrets(url: string): string {
  return url.replace(/\/\/[^/?#]*@/, '//***@').replace(/\?.*$/s, '?…')
}

/** True for an absolute http(s) address in the one spelling whose password is recognized when it is hidden. */
export function isHttp(text: string): boolean {
  return /^https?:\/\//i.test(text) && parseUrl(text) !== undefined
}

/** The address that is requested, in normal form, without user name, password and query. */
function asRequested(target: string): string {
  if (!isHttp(target)) return withoutSecrets(target)
  const { protocol, username, password, host, pathname, search } = new URL(target)
  const path = /^[^/]*\/\/[^/?#\\]*$/.test(target) ? '' : pathname
  return `${protocol}//${username || password ? '***@' : ''}${host}${path}${search === '' ? '' : '?…'}`
}

/** Decision whether a route accepts a delivery, with the reason for a person. */
export interface RouteExplanation {
  /** Label of the route. */
  readonly target: string
  readonly matched: boolean
  readonly why: string
}

/** The parts of a delivery that determine its targets. */
export type Routed = VerifiedEvent & ConditionSubject

/** Routes that accept a delivery: all that match, unless the delivery is ignored. */
export function routesFor(
  routes: readonly Route[],
  ignore: readonly Match[],
  delivery: Routed,
): readonly Route[] {
  if (ignore.some((match) => matches(match, delivery))) return []
  const subject = new DeliveryView(delivery)
  return routes.filter((route) => obstacle(route, delivery, subject) === undefined)
}

/** The reason why a route does not accept a delivery. */
type Obstacle = 'event' | 'proof' | Condition

/**
 * Decides whether a route accepts a delivery. Undefined: it does. Deliveries without proof are only for routes that name
 * their source.
 */
function obstacle(
  { match, where }: Accepting,
  delivery: VerifiedEvent,
  subject: DeliveryView,
): Obstacle | undefined {
  if (!matches(match, delivery)) return 'event'
  const isTaken =
    delivery.verifiedBy !== 'none' ||
    alternatives(match).some((each) => namesSource(each) && matches(each, delivery))
  return isTaken ? where.find(({ holds }) => !holds(subject)) : 'proof'
}

/** The ignore rule that matches a delivery. Undefined if there is none, even if no route accepts it. */
export function ignoredBy(ignore: readonly string[], delivery: VerifiedEvent): string | undefined {
  return ignore.find((text) => matches({ text }, delivery))
}

/** Parses the match of a target's id, with its conditions. @throws RelayError `usage` for one of another version of relay */
function readMatch(text: string): Accepting {
  const [events = ''] = /^[^[]*/.exec(text) ?? []
  const { conditions, end } = readBracketed(text, events.length)
  if (end < text.length) throw new RelayError('usage', `Invalid match ${text}`)
  return { match: { text: events }, where: conditions }
}

/**
 * Explains for every route whether it accepts a delivery. @throws RelayError `usage` for a match of another version of
 * relay
 */
export function explainRoutes(
  routes: readonly LiveRoute[],
  ignore: readonly string[],
  delivery: Routed,
): readonly RouteExplanation[] {
  const ignored = ignoredBy(ignore, delivery)
  const subject = new DeliveryView(delivery)
  return routes.map(({ label: target, match: text }) => {
    const name = nameOf(delivery)
    if (ignored !== undefined) return { target, matched: false, why: `${name} is ignored by ${ignored}` }
    const why = obstacle(readMatch(text), delivery, subject)
    return { target, matched: why === undefined, why: whyWords(why, { text, name, subject }) }
  })
}

function whyWords(
  why: Obstacle | undefined,
  { text, name, subject }: { readonly text: string; readonly name: string; readonly subject: DeliveryView },
): string {
  if (why === undefined) return `${name} matches ${text}`
  if (why === 'event') return `${name} does not match ${text}`
  if (why === 'proof') return `nothing proves it, and ${text} names no source`
  return `${why.describe(subject)}, not ${why.text}`
}

/** Formats `push`, `issues.opened`, `stripe/invoice.paid`. */
function nameOf({ event, action, provider }: SourceEvent): string {
  const whole = action === null ? event : `${event}.${action}`
  return qualified(provider, whole)
}

export type NamedTarget = { readonly id: string; readonly name?: string }

/**
 * Targets by their public id. Targets that differ only in their secrets have no names, since it is unknown which one is
 * meant.
 */
export function publicTargets({ routes }: { readonly routes: readonly Route[] }): readonly NamedTarget[] {
  const targets = routes.map(({ id, name }) => ({ id: publicTargetId(id), name }))
  return targets.map(({ id, name }) => {
    const isOnly = targets.every((other) => other.id !== id || other.name === name)
    return isOnly && name !== undefined ? { id, name } : { id }
  })
}

/**
 * Short name for each target, by its id: the name of its route, else an address's host and port or the first word of a
 * command. Targets that would share a name get the rest of the address or command too, then their match.
 */
export function shortNames(targets: readonly NamedTarget[]): ReadonlyMap<string, string> {
  const candidates = new Map<string, readonly string[]>()
  for (const { id, name } of targets)
    if (name !== undefined || !candidates.has(id))
      candidates.set(id, name === undefined ? namesOf(id) : [name])
  const all = [...candidates.values()]
  return new Map(
    [...candidates].map(([id, names]) => {
      const unique = names.find((one) => all.filter((others) => others.includes(one)).length === 1)
      return [id, unique ?? names.at(-1) ?? id]
    }),
  )
}

/** Possible names of a target, the shortest first. */
function namesOf(id: string): readonly string[] {
  const label = labelOf(id)
  const target = labelOf(`${ALL}=${splitId(id).target}`)
  if (target.startsWith(EXEC)) {
    const command = target.slice(EXEC.length)
    const word = command.split(' ').find((part) => !/^\w+=/.test(part)) ?? command
    return [word.split('/').at(-1) || word, command, label]
  }
  const address = target.replace(/^https?:\/\/(?:\*\*\*@)?/, '')
  return [address.replace(/[/?].*$/s, ''), address, label]
}

/** A route, or a removed target that still has deliveries waiting. Contains no password. */
export interface LiveRoute extends ForwardCounts {
  readonly match: string
  readonly label: string
  /** The user's name for the target. */
  readonly name?: string | undefined
  /** How its deliveries are sent, where that is not as to all targets: `timeout 90s`, `header X-Key`. */
  readonly options?: readonly string[] | undefined
  /** Set if the profile stores it, and not the settings. */
  readonly ofProfile?: true
  /** `idle`: no relay runs that would forward to it. */
  readonly state: TargetStatus['state'] | 'idle'
  /** Time at which it went down, or was removed. Milliseconds. */
  readonly since?: number | undefined
  /** Time of the next attempt at a target that is down. Milliseconds. */
  readonly nextProbeAt?: number | undefined
  /** Why its first delivery waits, if any waits. */
  readonly waitsFor?: string | undefined
}

export interface LiveRoutes {
  readonly routes: readonly LiveRoute[]
  /** Ignore rules. */
  readonly ignore: readonly string[]
}

/** Describes how a route sends. Contains no value of a header. */
function optionTexts({
  timeout,
  ordered,
  concurrency,
  headers = {},
  verify,
  ca,
  reply,
}: RouteOptions = {}): readonly string[] {
  return [
    ...(timeout === undefined
      ? []
      : [timeout === Infinity ? 'no timeout' : `timeout ${formatDuration(timeout)}`]),
    ...(ordered ? ['ordered'] : []),
    ...(concurrency === undefined ? [] : [`concurrency ${concurrency}`]),
    ...Object.keys(headers).map((name) => `header ${name}`),
    ...(verify === false ? ['certificate not checked'] : []),
    ...(ca === undefined ? [] : [`certificates of ${ca}`]),
    ...(reply === undefined ? [] : [reply === true ? 'reply' : `reply within ${formatDuration(reply)}`]),
  ]
}

/** Lists the routes with the state of each target and the numbers of its deliveries in the journal. */
export function liveRoutes(
  { routes, ignore }: { readonly routes: readonly Route[]; readonly ignore: readonly Match[] },
  targets: readonly TargetStatus[],
  counts: ReadonlyMap<string, ForwardCounts>,
): LiveRoutes {
  const status = new Map(targets.map((target) => [target.id, target]))
  const configured = new Map(routes.map((route) => [route.id, route]))
  const liveRoute = (id: string): LiveRoute => {
    const target = status.get(id)
    const { state = 'idle', since, nextProbeAt } = target ?? {}
    const { waiting = 0, succeeded = 0, failed = 0 } = counts.get(id) ?? {}
    const about = {
      match: splitId(id).match,
      label: labelOf(id),
      name: configured.get(id)?.name ?? target?.name,
    }
    const options = optionTexts(configured.get(id))
    const waitsFor = waiting > 0 ? targetReason(target, Date.now()) : undefined
    return {
      ...about,
      ...(options.length > 0 && { options }),
      ...(configured.get(id)?.ofProfile && { ofProfile: true as const }),
      state,
      since,
      nextProbeAt,
      waitsFor,
      waiting,
      succeeded,
      failed,
    }
  }
  return {
    routes: [...new Set([...configured.keys(), ...status.keys()])].map(liveRoute),
    ignore: ignore.map(({ text }) => text),
  }
}
