import { RelayError } from '../base/errors.js'
import { parseUrl, expandLocal } from '../base/address.js'
import { isCodeHost } from '../base/providers.js'
import type { ReadRoutes } from '../base/settings.js'
import { suggest } from '../base/text.js'
import { type Match, matches, namesSource, parseMatch, SOURCE } from '../journal/filter.js'
import type { ForwardCounts, VerifiedEvent } from '../journal/types.js'
import { EVENT_NAMES } from '../codehost/schemes.js'
import type { Target, TargetStatus } from './target.js'

/** Rule that forwards matching deliveries to a target. */
export interface Route {
  readonly match: Match
  readonly target: Target
  /** Id of the target in the journal: `<match>=<address>` or `<match>=exec:<command>`, as written. */
  readonly id: string
  /** The id on one line, without the match `*`, and without the password and query of an address. */
  readonly label: string
  /** The user's name for the target. It is not part of the id. */
  readonly name?: string
  /** True if only a file of the working folder names the target. */
  readonly ofFolder?: boolean
}

export function createRoute(match: Match, target: Target, name?: string): Route {
  const written = target.kind === 'http' ? target.url : EXEC + target.command
  const id = `${match.text}=${written}`
  return { match, target, id, label: labelOf(id), ...(name !== undefined && { name }) }
}

const EXEC = 'exec:'
const ALL = '*'

/**
 * Parses `[name=][match=]url`. Without a match, the route is for every delivery. A single word before the address is
 * the match if it is an event or resembles one, otherwise the name. `3000` and `localhost:3000/hooks` are addresses on
 * this machine.
 * @throws RelayError `settings` that names the problem
 */
export function parseForward(text: string): Route {
  const { name, rest: whole } = readName(text.trim(), isAddress, OF_SOURCE)
  const at = isAddress(whole) ? -1 : whole.indexOf('=')
  const written = whole.slice(at + 1).trim()
  const url = expandLocal(written)
  // Other text with a slash before its `=` is an unrecognized address, which can contain a password.
  const match = at === -1 ? ALL : whole.slice(0, at).trim()
  if (!isHttp(url) || (match.includes('/') && !SOURCE_MATCH.test(match)))
    throw invalid(`'${withoutSecrets(whole)}' names no http:// or https:// address${hintFor(written)}`)
  checkHost(url, whole)
  return createRoute(readMatch(match), { kind: 'http', url }, name)
}

const OF_SOURCE = `${SOURCE}/[\\w:*-][\\w.: /*-]*`
const SOURCE_MATCH = new RegExp(`^${OF_SOURCE}$`)
/**
 * Before a command, an event with spaces must look like GitLab's `Push Hook`: `bin/run x=1` and `bin/run ENV=1` are
 * commands.
 */
const OF_SOURCE_BEFORE_COMMAND = `${SOURCE}/[\\w:*-][\\w.:/*-]*(?: [A-Z][a-z][\\w.:/*-]*)*`
const BEFORE_COMMAND = new RegExp(`^\\s*(${OF_SOURCE_BEFORE_COMMAND}|[^\\s=]*)=(.*)$`, 's')

const NAMED = /^([a-z][\w-]{0,31})=(.*)$/is

/**
 * Splits the target's name off, if the text begins with one: a word that is no event, before a match or, if `isTarget`
 * accepts the rest, before the target itself. There, a word that resembles an event is probably a misspelt match, and
 * no name. `ofSource` is the pattern of a match that names its source.
 */
function readName(
  text: string,
  isTarget: (rest: string) => boolean,
  ofSource: string,
): { readonly name?: string; readonly rest: string } {
  const [, name = '', after = ''] = NAMED.exec(text) ?? []
  const rest = after.trim()
  if (name === '') return { rest: text }
  const events = EVENT_NAMES
  const match = new RegExp(`^(?:\\*|(?:\\*|${events.join('|')})(?:\\.[\\w.:*-]+)?|${ofSource})=`)
  const isName =
    !events.includes(name) && (match.test(rest) || (isTarget(rest) && suggest(name, events) === undefined))
  return isName ? { name, rest } : { rest: text }
}

/**
 * Parses `[name=][match=]command`. Without a match, the route is for every delivery. A word before the first `=` is the
 * match, unless a match follows it, so a command that begins with an assignment needs an explicit match: `*=NAME=value
 * command`.
 * @throws RelayError `settings` that names the problem
 */
export function parseExec(text: string): Route {
  const { name, rest: whole } = readName(text.trim(), () => false, OF_SOURCE_BEFORE_COMMAND)
  const [, match, rest] = BEFORE_COMMAND.exec(whole) ?? []
  const isMatch = match !== undefined && (/^[\w.:*-]*$/.test(match) || SOURCE_MATCH.test(match))
  if (isMatch && /^[A-Z_][A-Z\d_]*$/.test(match)) {
    throw invalid(`'${match}=' sets a variable; for a command that begins so, write '*=${match}=…'`)
  }
  const command = (isMatch ? (rest ?? '') : whole).trim()
  if (command === '') throw invalid('there is no command')
  if (command.includes('\0')) throw invalid('a command cannot hold a NUL character')
  return createRoute(readMatch(isMatch ? match : ALL), { kind: 'command', command }, name)
}

/** Label of the target with this id. */
export function labelOf(id: string): string {
  const [, match = '', target = ''] = /^([^=]*)=(.*)$/s.exec(id) ?? ['', '', id]
  const shown = target.startsWith(EXEC) ? target : asRequested(target)
  return (match === '' || match === ALL ? shown : `${match}=${shown}`).replaceAll(/\s+/g, ' ')
}

/** True if the target with this id is a command. */
export function isCommand(id: string): boolean {
  return /^[^=]*=exec:/.test(id)
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

/** The address that is requested, in normal form, without user name, password and query. */
function asRequested(target: string): string {
  if (!isHttp(target)) return withoutSecrets(target)
  const { protocol, username, password, host, pathname, search } = new URL(target)
  const path = /^[^/]*\/\/[^/?#\\]*$/.test(target) ? '' : pathname
  return `${protocol}//${username || password ? '***@' : ''}${host}${path}${search === '' ? '' : '?…'}`
}

/**
 * Refuses an address that the URL standard reads as another host than a person does: `http://a\@b/` goes to `a`,
 * `http://127.1/` to 127.0.0.1 (https://url.spec.whatwg.org, sections 3.5 and 4.4).
 * @throws RelayError `settings` that says how to write it
 */
function checkHost(url: string, whole: string): void {
  if (url.includes('\\'))
    throw invalid(`'${withoutSecrets(whole)}' holds a backslash: write / where it means one, else %5C`)
  const { hostname } = new URL(url)
  const written = url.replace(/^[^/]*\/\//, '').replace(/[/?#].*$/s, '')
  const name = written.slice(written.lastIndexOf('@') + 1).replace(/:\d*$/, '')
  if (name.toLowerCase() !== hostname)
    throw invalid(`'${withoutSecrets(whole)}' goes to the host ${hostname}: write that name`)
}

/** Advice for an address: `: write https://…` for a host on another machine, the limit for a port beyond it. */
function hintFor(text: string): string {
  if (/^(?:localhost)?:?\d{5,}(?=[/?#]|$)/i.test(text)) return ': a port is at most 65535'
  const isHost = /^(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?(?=[/?#]|$)/i.test(text)
  return isHost ? `: write https://${withoutSecrets(text)}` : ''
}

function isAddress(text: string): boolean {
  return isHttp(expandLocal(text))
}

function isHttp(text: string): boolean {
  // Other spellings of an address would not be recognized when its password is hidden.
  return /^https?:\/\//i.test(text) && parseUrl(text) !== undefined
}

function readMatch(text: string): Match {
  try {
    return parseMatch(text)
  } catch (cause) {
    if (cause instanceof RelayError) throw new RelayError('settings', cause.message, { cause })
    throw cause
  }
}

function invalid(why: string): RelayError {
  return new RelayError('settings', `Invalid route: ${why}`)
}

/** The current routes. */
export class Routing {
  routes: readonly Route[] = []
  ignore: readonly Match[] = []

  /** @throws RelayError `settings` naming the invalid route, or `usage` naming the invalid match */
  constructor(settings: ReadRoutes) {
    this.replace(settings)
  }

  /** Ids of the targets of a delivery, each once. */
  targetsOf(delivery: VerifiedEvent): readonly string[] {
    return [...new Set(routesFor(this.routes, this.ignore, delivery).map(({ id }) => id))]
  }

  /** The ignore rule that matches a delivery, if there is one. */
  ignoredBy(delivery: VerifiedEvent): string | undefined {
    return this.ignore.find((match) => matches(match, delivery))?.text
  }

  /** Replaces all routes. @throws RelayError as the constructor, without a change */
  replace({ forward, folderForward: ofFolder = false, exec, ignore }: ReadRoutes): void {
    const addresses = forward.map((text) => ({ ...parseForward(text), ...(ofFolder && { ofFolder }) }))
    const routes = [...addresses, ...exec.map(parseExec)]
    this.ignore = ignore.map(parseMatch)
    this.routes = routes
  }
}

/** Decision whether a route accepts a delivery, with the reason for a person. */
export interface RouteExplanation {
  /** Label of the route. */
  readonly target: string
  readonly matched: boolean
  readonly why: string
}

/** Routes that accept a delivery: all that match, unless the delivery is ignored. */
export function routesFor(
  routes: readonly Route[],
  ignore: readonly Match[],
  delivery: VerifiedEvent,
): readonly Route[] {
  if (ignore.some((match) => matches(match, delivery))) return []
  return routes.filter(({ match }) => takes(match, delivery))
}

/**
 * True if a route with this match accepts a delivery. Deliveries without proof are only for routes that name their
 * source.
 */
function takes(match: Match, delivery: VerifiedEvent): boolean {
  return matches(match, delivery) && (delivery.verifiedBy !== 'none' || namesSource(match))
}

/** The ignore rule that matches a delivery. Undefined if there is none, even if no route accepts it. */
export function ignoredBy(ignore: readonly string[], delivery: VerifiedEvent): string | undefined {
  return ignore.find((text) => matches({ text }, delivery))
}

/** Explains for every route whether it accepts a delivery. */
export function explainRoutes(
  routes: readonly { readonly label: string; readonly match: string }[],
  ignore: readonly string[],
  delivery: VerifiedEvent,
): readonly RouteExplanation[] {
  const ignored = ignoredBy(ignore, delivery)
  const { event, action, provider } = delivery
  const whole = action === null ? event : `${event}.${action}`
  const name = isCodeHost(provider) ? whole : `${provider}/${whole}`
  return routes.map(({ label: target, match: text }) => {
    if (ignored !== undefined) return { target, matched: false, why: `${name} is ignored by ${ignored}` }
    const matched = takes({ text }, delivery)
    const isUnproved = !matched && matches({ text }, delivery)
    const why = isUnproved
      ? `nothing proves it, and ${text} names no source`
      : `${name} ${matched ? 'matches' : 'does not match'} ${text}`
    return { target, matched, why }
  })
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
  const target = label.replace(/^[^=/]*=(?=exec:|https?:)/, '')
  if (target.startsWith('exec:')) {
    const command = target.slice('exec:'.length)
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
  /** `idle`: no relay runs that would forward to it. */
  readonly state: TargetStatus['state'] | 'idle'
  /** Time at which it went down, or was removed. Milliseconds. */
  readonly since?: number | undefined
  /** Time of the next attempt at a target that is down. Milliseconds. */
  readonly nextProbeAt?: number | undefined
}

export interface LiveRoutes {
  readonly routes: readonly LiveRoute[]
  /** Ignore rules. */
  readonly ignore: readonly string[]
}

/** Lists the routes with the state of each target and the numbers of its deliveries in the journal. */
export function liveRoutes(
  { routes, ignore }: Routing,
  targets: readonly TargetStatus[],
  counts: ReadonlyMap<string, ForwardCounts>,
): LiveRoutes {
  const status = new Map(targets.map((target) => [target.id, target]))
  const names = new Map(routes.map(({ id, name }) => [id, name]))
  const liveRoute = (id: string): LiveRoute => {
    const { state = 'idle', since, nextProbeAt } = status.get(id) ?? {}
    const { waiting = 0, succeeded = 0, failed = 0 } = counts.get(id) ?? {}
    const about = { match: id.slice(0, id.indexOf('=')), label: labelOf(id), name: names.get(id) }
    return { ...about, state, since, nextProbeAt, waiting, succeeded, failed }
  }
  return {
    routes: [...new Set([...names.keys(), ...status.keys()])].map(liveRoute),
    ignore: ignore.map(({ text }) => text),
  }
}
