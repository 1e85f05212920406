import { RelayError } from '../base/errors.js'
import { PROVIDER_NAMES, shownSource } from '../base/source-names.js'
import { parseDuration, parseSpoken } from '../base/time.js'
import { isFailedAttempt, type SourceEvent, type Summary } from './types.js'

/**
 * Pattern for events as the user writes it. For the code host: `push`, `pull_request.opened`, `pull_request.*`,
 * `*.closed`. For another source: `stripe/invoice.paid`, `stripe/invoice.*`, `slack/*`. For all: `*`. Several are joined
 * by commas: `push,issues`.
 */
export interface Match {
  readonly text: string
}

/** Name of an event: letters, digits, `_ . : -` and inner spaces, without a dot at either end. */
const NAME = '[\\w:-](?:[\\w.: -]*[\\w:-])?'
const WHOLE = new RegExp(`^(?:\\*|${NAME})(?:\\.(?:\\*|${NAME}))?$`)
/** The name of a source. */
export const SOURCE = '[a-z][a-z0-9-]{0,31}'
/** Pattern with a source. Its events may also have slashes, and a `*` may stand for the rest of a name. */
const OF_SOURCE = new RegExp(`^${SOURCE}/(?:\\*|[\\w:-](?:[\\w.: /-]*(?:[\\w:-]|[\\w.: /-]\\*))?)$`)
/**
 * Longest pattern. Events have at most 100 characters, and so do the actions that users choose for
 * `repository_dispatch`.
 */
const MAX_LENGTH = 240
/** Most patterns of a list: more than any code host has events. */
const MAX_LISTED = 200

/**
 * Parses `event` or `event.action`, in which `*` may stand for either part as a whole, or `source/event`, in which it
 * may stand for the end of the event. Several are joined by commas.
 * @throws RelayError `usage`
 */
export function parseMatch(text: string): Match {
  const each = text.split(/ *, */)
  if (each.length > MAX_LISTED)
    throw new RelayError('usage', `Invalid match: write at most ${MAX_LISTED} events`)
  return { text: each.map(checked).join(',') }
}

function checked(text: string): string {
  if (text.length <= MAX_LENGTH && (WHOLE.test(text) || OF_SOURCE.test(text))) return text
  const named = text.length <= MAX_LENGTH ? ` '${text}'` : ''
  const form = text.includes('/')
    ? 'source/event, with * for the end of an event'
    : 'event or event.action, with * for all of a part'
  throw new RelayError('usage', `Invalid match${named}: write ${form}`)
}

/** The patterns of a list. */
export function alternatives({ text }: Match): readonly Match[] {
  return text.includes(',') ? text.split(',').map((each) => ({ text: each })) : [{ text }]
}

/** Event that a single pattern matches. `*` as a name is matched only by `*`. */
export function eventMatching({ text }: Match): SourceEvent {
  const at = text.indexOf('/')
  if (at !== -1) return { provider: text.slice(0, at), event: text.slice(at + 1), action: null }
  const [event = '', action = null] = text.split('.', 2)
  return { provider: PROVIDER_NAMES[0], event, action }
}

/** True if a single pattern names its source. A delivery without proof is matched only by such patterns. */
export function namesSource({ text }: Match): boolean {
  return text.includes('/')
}

/**
 * True if a delivery matches a pattern. For the code host, an event alone, and `event.*`, match it with any action and
 * with none; `*.action` matches any event with that action. For another source, an event alone, and `event.*`, match it
 * and every name that continues it after a dot.
 */
export function matches(match: Match, named: SourceEvent): boolean {
  const { text } = match
  if (text.includes(',')) return alternatives(match).some((each) => matches(each, named))
  const { event, action, provider } = named
  if (text === '*' || text === '*.*') return true
  const at = text.indexOf('/')
  if (at !== -1) return text.slice(0, at) === provider && continues(event, text.slice(at + 1))
  return (
    shownSource(provider) === undefined &&
    (text === event ||
      text === `${event}.*` ||
      (action !== null && (text === `${event}.${action}` || text === `*.${action}`)))
  )
}

function continues(event: string, wanted: string): boolean {
  if (wanted.endsWith('*') && !wanted.endsWith('.*')) return event.startsWith(wanted.slice(0, -1))
  const name = wanted.replace(/\.\*$/, '')
  return event === name || event.startsWith(`${name}.`)
}

/**
 * Status of a delivery: a forward failed, a forward waits, every forward has succeeded, or it was forwarded to no
 * target. `failed` and `waiting` can hold at once.
 */
export type DeliveryStatus = 'failed' | 'waiting' | 'succeeded' | 'none'

export const DELIVERY_STATUSES: readonly DeliveryStatus[] = ['failed', 'waiting', 'succeeded', 'none']

/** Search criteria. All that are given must hold. */
export interface Filter {
  /** Matches any of these. An empty list matches everything. */
  readonly events?: readonly Match[]
  /** `owner/name`, in any case. */
  readonly repo?: string
  /** The name of a source. */
  readonly source?: string
  /** Received at or after this instant, in milliseconds. Infinity: only future deliveries. */
  readonly since?: number
  /** Received before this instant, in milliseconds. */
  readonly until?: number
  /** `failed attempt`: a forward failed, or a target asked for another attempt. */
  readonly status?: DeliveryStatus | 'failed attempt'
  /** Text that the body contains. The case of the letters a to z is ignored. */
  readonly text?: string
  /** Only the newest N entries. */
  readonly last?: number
  /** Only entries with a smaller number. */
  readonly before?: number
}

/** True if an entry meets the criteria that concern its summary: all but text, time and number. */
export function matchesFilter(
  summary: Pick<Summary, 'event' | 'action' | 'provider' | 'repo' | 'forwards'>,
  { events = [], repo, source, status }: Filter,
): boolean {
  return (
    (source === undefined || summary.provider === source) &&
    (repo === undefined || summary.repo?.toLowerCase() === repo.toLowerCase()) &&
    (events.length === 0 || events.some((match) => matches(match, summary))) &&
    (status === undefined || hasStatus(summary, status))
  )
}

function hasStatus({ forwards }: Pick<Summary, 'forwards'>, wanted: NonNullable<Filter['status']>): boolean {
  const all = Object.values(forwards)
  if (wanted === 'failed attempt') return all.some(isFailedAttempt)
  if (wanted === 'none') return all.length === 0
  if (wanted === 'succeeded') return all.length > 0 && all.every(({ status }) => status === 'succeeded')
  return all.some(({ status }) => status === wanted)
}

/** A filter as people write it, on the command line and in an address. */
export interface FilterText {
  readonly event?: readonly string[] | undefined
  readonly repo?: string | undefined
  readonly source?: string | undefined
  readonly since?: string | undefined
  readonly until?: string | undefined
  readonly status?: string | undefined
  readonly text?: string | undefined
}

/** Longest text to search for: longer than anybody types. */
const MAX_TEXT = 200

/**
 * Parses a filter. `nameOf` returns the name of a part for messages, such as `--since` on the command line.
 * @throws RelayError `usage` that begins with the name of the part
 */
export function parseFilter(
  { event, repo, source, since, until, status, text }: FilterText,
  now: number,
  nameOf: (part: keyof FilterText) => string,
): Filter {
  const given = DELIVERY_STATUSES.find((each) => each === status)
  // A GitLab has projects in groups of groups.
  if (repo !== undefined && !/^[^\s/]+(?:\/[^\s/]+)+$/.test(repo))
    throw new RelayError('usage', `${nameOf('repo')}: must be owner/name`)
  if (source !== undefined && !new RegExp(`^${SOURCE}$`).test(source))
    throw new RelayError('usage', `${nameOf('source')}: must be the name of a source`)
  if (status !== undefined && given === undefined)
    throw new RelayError('usage', `${nameOf('status')}: must be one of ${DELIVERY_STATUSES.join(', ')}`)
  if (text !== undefined && (text === '' || text.length > MAX_TEXT))
    throw new RelayError('usage', `${nameOf('text')}: must be 1 to ${MAX_TEXT} characters`)
  return {
    ...(event && { events: event.flatMap((each) => ofSource(each, source)) }),
    ...(repo !== undefined && { repo }),
    ...(source !== undefined && { source }),
    ...(since !== undefined && { since: parseSince(nameOf('since'), since, now) }),
    ...(until !== undefined && { until: parseInstant(nameOf('until'), until, now) }),
    ...(given && { status: given }),
    ...(text !== undefined && { text }),
  }
}

/**
 * Parses the patterns of a list. The filter's source is added to those that have none: only events of the code host are
 * written without a source.
 */
function ofSource(list: string, source: string | undefined): readonly Match[] {
  return list.split(/ *, */).map((match) => {
    const isNamed =
      source === undefined || shownSource(source) === undefined || match.startsWith(`${source}/`)
    return parseMatch(isNamed ? match : `${source}/${match}`)
  })
}

/** A date, or a date and time with or without its zone (RFC 3339, whose `T` can be a space). */
const ISO = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})?)?$/
/** Milliseconds since 1970, from 2001 on, as the inspector's page writes instants. */
const MILLISECONDS = /^\d{12,15}$/

/**
 * Parses an instant to milliseconds: a duration ago (`1h`), a day or a time as people say it (`yesterday`), an instant (`2026-01-31T12:00Z`; local time without a zone;
 * milliseconds since 1970), or `now`.
 * @throws RelayError `usage` that begins with `name`
 */
export function parseInstant(name: string, text: string, now: number): number {
  if (text === 'now') return now
  const ago = parseDuration(text)
  const at = ago === undefined ? (parseSpoken(text, now) ?? fixedInstant(text)) : now - ago
  if (!Number.isNaN(at)) return at
  throw new RelayError(
    'usage',
    `${name}: must be a duration such as 1h, a day such as yesterday or monday, a time such as 2026-01-31T12:00, or now`,
  )
}

/**
 * Parses `--since`. `now` becomes Infinity, which means future entries, whatever any clock says. @throws as {@link
 * parseInstant}
 */
export function parseSince(name: string, text: string, now: number): number {
  return text === 'now' ? Infinity : parseInstant(name, text, now)
}

function fixedInstant(text: string): number {
  if (MILLISECONDS.test(text)) return Number(text)
  if (!ISO.test(text) || !isDay(text.slice(0, 10))) return Number.NaN
  // JavaScript parses a date without a time as UTC.
  return Date.parse(text.length === 10 ? `${text}T00:00` : text.replace(' ', 'T'))
}

/** False for a day that does not exist, such as 31 February, which Date.parse accepts as a day in March. */
function isDay(date: string): boolean {
  const at = Date.parse(`${date}T00:00Z`)
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(date)
}
