import { shownSource } from '../base/source-names.js'
import { RelayError } from '../base/errors.js'
import type { RunningInstance } from '../instance/protocol.js'
import { unreachableError } from '../instance/running.js'
import type { RefusedSummary } from '../server/instance.js'
import type { RefusedKind } from '../webhook/refused.js'
import type { Flags, Shell } from './command.js'
import { callInstance } from './instance-client.js'
import { type FilterFlags, readFilter } from './journal.js'
import { marked, outside, own, timeField } from './output/outside.js'
import type { Output } from './output/output.js'
import { bold, dim, joined, t, type Text, yellow } from './output/text.js'
import { localTime, spokenTime } from './output/time.js'
import { type Advised, commandFor, startCommand } from './advice.js'
import { openProfile, type Profile } from './profile.js'

// Requests that the running instance refused, which are only in its memory.

/** True if the word is for a refused request, also without its number. */
export function isRefused(word: string): boolean {
  return word.startsWith('refused:')
}

/** Parses the number in `refused:3`. Undefined for any other word. @throws RelayError `usage` for an invalid number */
export function refusedId(word: string, about: Advised): number | undefined {
  const [, id] = /^refused:(\d{1,15})$/.exec(word) ?? []
  if (id !== undefined) return Number(id)
  if (!isRefused(word)) return undefined
  throw new RelayError(
    'usage',
    `${JSON.stringify(word)} has no number. ${commandFor(about, 'log --refused')} lists those there are`,
  )
}

/** Formats the word that names a refused request. */
export function refusedWord(id: number): string {
  return `refused:${id}`
}

export function instanceOf(profile: Profile): RunningInstance {
  const { instance, name } = profile
  if (instance) return instance
  if (profile.unreachable) throw unreachableError(profile.unreachable)
  throw new RelayError(
    'unavailable',
    `Profile ${name} is not being served, and only the running instance has refused requests. Start it with ${startCommand(profile)}`,
  )
}

// log --refused

/** Descriptions of each kind of refused requests. */
const KINDS: readonly (readonly [RefusedKind, string])[] = [
  ['no_signature', 'without a well-formed signature'],
  ['invalid_signature', 'whose signature does not match'],
  ['invalid_event', 'malformed, or under the wrong event'],
  ['too_large', 'too large'],
  ['wrong_path', 'sent to another path'],
]

/** Flags of `relay log` that select entries of the journal. */
const FILTERS = new Set(['event', 'repo', 'since', 'until', 'status', 'failed', 'text', 'follow'])

/** A refused request in a list, or the counts of each kind. */
export type RefusedItem =
  | { readonly type: 'refused'; readonly refused: RefusedSummary }
  | { readonly type: 'counts'; readonly counts: RefusedCounts }
type RefusedCounts = Readonly<Partial<Record<RefusedKind, number>>>

/** Lists the requests that the running instance refused, oldest first, and the counts of each kind, for all sources. */
export async function* refusedItems(shell: Shell, flags: Flags & FilterFlags): AsyncGenerator<RefusedItem> {
  const given = Object.keys(flags).find((name) => FILTERS.has(name))
  if (given !== undefined) throw new RelayError('usage', `--refused cannot be combined with --${given}`)
  const { last = Infinity, source } = readFilter({ last: flags.last, source: flags.source }, Date.now())
  await using profile = await openProfile(shell, flags, { problems: 'fail' })
  const instance = instanceOf(profile)
  const { refused: all, counts } = await callInstance(instance, 'refused', {}, shell)
  const chosen = all.filter((each) => source === undefined || each.source === source)
  for (const refused of chosen.slice(Math.max(0, chosen.length - last))) yield { type: 'refused', refused }
  if (chosen.length === 0) throw new RelayError('no_match', 'The running instance has refused no request')
  if (source === undefined) yield { type: 'counts', counts }
}

export function printRefused(item: RefusedItem, out: Output): void {
  if (item.type === 'refused')
    return refusedLines(item.refused, out.width).forEach((line) => out.result(line))
  const { counts } = item
  const counted = KINDS.filter(([kind]) => counts[kind] !== undefined)
  const texts = counted.map(([kind, name]) => `${counts[kind]?.toLocaleString('en-US')} ${name}`)
  if (texts.length > 0) out.say(`refused since the start: ${texts.join(', ')}`)
}

export function refusedJson(item: RefusedItem) {
  return item.type === 'refused'
    ? refusedObject(item.refused)
    : marked({ type: 'refused_counts', ...item.counts })
}

/**
 * Formats `refused:3 2026-01-31 12:04:11 tunnel 401 push 72d3162e`, and the reason, on the same line if it fits
 * `columns`.
 */
function refusedLines(refused: RefusedSummary, columns: number): readonly Text[] {
  const { id, at, via, source, status, event, deliveryId, reason } = refused
  const time = dim(columns === Infinity ? localTime(at) : spokenTime(at, Date.now()))
  const from = shownSource(source) ?? []
  const named = [from, event ?? '-', deliveryId ?? '-'].flat()
  const line = joined([bold(refusedWord(id)), time, yellow(`${via} ${status}`), ...named], '  ')
  const whole = t`${line}  ${reason}`
  return whole.width <= columns ? [whole] : [line, ...t`  ${reason}`.wrap(columns, 2)]
}

/** Describes a refused request for a program, without headers and body. */
export function refusedObject(refused: RefusedSummary) {
  const { id, at, via, source, status, kind, reason, event, deliveryId, size } = refused
  const about = { type: 'refused', id, time: timeField(at), via, source: own(source), status, kind } as const
  const claims = { reason: outside(reason), event: outside(event), delivery: outside(deliveryId), size }
  return marked({ ...about, ...claims })
}
