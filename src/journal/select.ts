import type { Sql, SqlValue } from '../store/sql.js'
import type { Summary } from './delivery.js'
import { inMarks } from './marks.js'
import { type Match, matches } from './match.js'

/**
 * What became of a delivery: a forward failed, a forward waits, every forward has succeeded, or it was forwarded to no target. One
 * can have `failed` and `waiting` at once.
 */
export type DeliveryStatus = 'failed' | 'waiting' | 'succeeded' | 'none'

export const DELIVERY_STATUSES: readonly DeliveryStatus[] = ['failed', 'waiting', 'succeeded', 'none']

/** What is looked for; everything given must hold. */
export interface Filter {
  /** Any one of them; an empty list is the same as none given. */
  readonly events?: readonly Match[]
  /** `owner/name`, in any case. */
  readonly repo?: string
  /** Received at or after this instant, in milliseconds; Infinity: only what comes from now on. */
  readonly since?: number
  /** Received before this instant, in milliseconds. */
  readonly until?: number
  readonly status?: DeliveryStatus
  /** Text that the body contains, in any case of the letters a to z. */
  readonly text?: string
  /** At most so many, the newest. */
  readonly last?: number
  /** Only entries with a smaller number. */
  readonly before?: number
}

/**
 * How far the order of the entries and that in which they were received may differ, in milliseconds: several requests are
 * under way at once, and clocks are corrected a little.
 */
const DISORDER_MS = 60_000

/** A condition of SQL with its values. */
export interface Condition {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

/** Which numbers a query looks at, and how many it returns at most. */
export interface NumberRange {
  readonly before: number
  /** The first number that it looks at. */
  readonly from: number
  readonly limit: number
}

/**
 * How many entries one query looks at where no index finds those that match, so that intake never waits long for it: bodies are
 * read at 1.6 GB/s (measured), and 128 usual ones are 1 MB; looking up forwards takes 1 µs an entry.
 */
const TEXT_WINDOW = 128
const STATUS_WINDOW = 4096

/** How many entries one query with this filter may look at. */
export function windowOf({ text, status }: Filter): number {
  if (text !== undefined) return TEXT_WINDOW
  return status === 'succeeded' || status === 'none' ? STATUS_WINDOW : Infinity
}

/** The conditions of a filter on the time, found once for many queries. `now` is the wall clock's instant. */
export async function timeConditions(
  sql: Sql,
  { since = -Infinity, until = Infinity }: Filter,
  now: number,
): Promise<readonly Condition[]> {
  return [
    ...(since > -Infinity ? [await receivedSince(sql, since, now)] : []),
    ...(until < Infinity ? [await receivedBefore(sql, until, now)] : []),
  ]
}

/** The numbers of the entries in the range that pass the filter, whose conditions on the time are given, newest first. */
export async function selectNumbers(
  sql: Sql,
  filter: Filter,
  time: readonly Condition[],
  { before, from, limit }: NumberRange,
): Promise<readonly number[]> {
  const { events = [], status } = filter
  const common = [{ sql: 'delivery.n < ?', values: [before] }, ...conditionsOf(filter), ...time]
  if (from > 0) common.push({ sql: 'delivery.n >= ?', values: [from] })
  // Forwards that failed or wait are few: they are the table to begin with, which a cross join fixes.
  const isIndexed = status === 'failed' || status === 'waiting'
  const table = isIndexed
    ? `forward CROSS JOIN delivery WHERE forward.status = '${status}' AND delivery.n = forward.n AND`
    : 'delivery WHERE'
  const column = isIndexed ? 'DISTINCT forward.n AS n' : 'delivery.n AS n'
  const order = isIndexed ? 'forward.n' : 'delivery.n'
  // One query for each event, because each then reads only as many rows of the index as are wanted.
  const queries = alternatives(events).map((alternative): Condition => {
    const all = [...common, ...alternative]
    return {
      sql: `SELECT n FROM (SELECT ${column} FROM ${table} ${all.map((each) => `(${each.sql})`).join(' AND ')} ORDER BY ${order} DESC LIMIT ?) AS page`,
      values: [...all.flatMap(({ values }) => values), limit],
    }
  })
  const rows = await sql.query<{ n: number }>(
    `${queries.map((query) => query.sql).join(' UNION ')} ORDER BY n DESC LIMIT ?`,
    [...queries.flatMap(({ values }) => values), limit],
  )
  return rows.map(({ n }) => n)
}

/** The conditions that look at one entry alone. */
function conditionsOf({ repo, status, text }: Filter): Condition[] {
  return [
    ...(repo === undefined ? [] : [{ sql: 'lower(repo) = ?', values: [repo.toLowerCase()] }]),
    ...(status === 'none' ? [{ sql: `NOT EXISTS (${FORWARDS})`, values: [] }] : []),
    ...(status === 'succeeded'
      ? [{ sql: `EXISTS (${FORWARDS}) AND NOT EXISTS (${FORWARDS} AND status <> 'succeeded')`, values: [] }]
      : []),
    ...(text === undefined
      ? []
      : [
          {
            sql: `EXISTS (SELECT 1 FROM body WHERE body.n = delivery.n AND ${CONTAINS})`,
            values: [pattern(text)],
          },
        ]),
  ]
}

const FORWARDS = 'SELECT 1 FROM forward WHERE forward.n = delivery.n'
/** LIKE ignores the case of ASCII letters, and is 2.6 times as fast as `instr(lower(…), …)` (measured). */
const CONTAINS = `CAST(body.bytes AS TEXT) LIKE ? ESCAPE '\\'`

/** The pattern of LIKE for a text that may stand anywhere. */
function pattern(text: string): string {
  return `%${text.replaceAll(/[%_\\]/g, String.raw`\$&`)}%`
}

/** Which of these entries have the text in their body. */
export async function numbersWithText(
  sql: Sql,
  numbers: readonly number[],
  text: string,
): Promise<ReadonlySet<number>> {
  const found = new Set<number>()
  for (const { marks, values } of inMarks(numbers)) {
    const query = `SELECT n FROM body WHERE n IN ${marks} AND ${CONTAINS}`
    for (const { n } of await sql.query<{ n: number }>(query, [...values, pattern(text)])) found.add(n)
  }
  return found
}

/** SQLite takes 500 queries in one. With more than these every entry is read, and {@link passes} finds those that match. */
const MAX_ALTERNATIVES = 100

/** The conditions for each way in which a delivery can match one of the events; one without condition when all do. */
function alternatives(events: readonly Match[]): readonly (readonly Condition[])[] {
  if (events.length === 0 || events.some(({ text }) => text === '*' || text === '*.*')) return [[]]
  const all = events.flatMap(({ text }) => [
    [{ sql: 'event = ?', values: [text] }],
    ...splits(text).map(([event, action]) => [
      ...(event === '*' ? [] : [{ sql: 'event = ?', values: [event] }]),
      ...(action === '*' ? [] : [{ sql: 'action = ?', values: [action] }]),
    ]),
  ])
  return all.length > MAX_ALTERNATIVES ? [[]] : all
}

/** `event` and `action` at every dot: both may have dots in them. */
function splits(text: string): readonly (readonly [string, string])[] {
  return [...text.matchAll(/\./g)].map(({ index }) => [text.slice(0, index), text.slice(index + 1)] as const)
}

/**
 * Received since then. Where a time cannot be right the numbers decide: an entry received when the clock was set back counts
 * when one before it counts, and one from the future counts unless one after it is too old. The numbers begin near the earliest
 * entry of that time: to look for the least number of all of them would read the whole time span.
 */
async function receivedSince(sql: Sql, since: number, now: number): Promise<Condition> {
  const latest = now + DISORDER_MS
  const tooOld = since - DISORDER_MS
  if (since === Infinity) return { sql: 'FALSE', values: [] }
  const [bounds] = await sql.query<{ first: number | null; future: number }>(
    `SELECT (SELECT min(n) FROM delivery WHERE received_at BETWEEN earliest AND earliest + ${DISORDER_MS}) AS first,
      EXISTS (SELECT 1 FROM delivery WHERE received_at > ?) AS future
      FROM (SELECT min(received_at) AS earliest FROM delivery WHERE received_at BETWEEN ? AND ?) AS edge`,
    [latest, since, latest],
  )
  const first = bounds?.first ?? Number.MAX_SAFE_INTEGER
  const inPlace = {
    sql: 'delivery.n >= ? AND (received_at >= ? OR received_at < ?)',
    values: [first, since, tooOld],
  }
  if (!bounds?.future) return inPlace
  // In the order of the numbers; the sign keeps SQLite from the other index.
  const [old] = await sql.query<{ n: number }>(
    'SELECT n FROM delivery WHERE +received_at < ? ORDER BY n DESC LIMIT 1',
    [tooOld],
  )
  return {
    sql: `delivery.n >= ? AND (${inPlace.sql} OR received_at > ?)`,
    values: [Math.min(first, (old?.n ?? 0) + 1), ...inPlace.values, latest],
  }
}

/**
 * Received before then. The numbers decide, again: of the entries after the first that is certainly later, none counts, even one
 * received when the clock was set back.
 */
async function receivedBefore(sql: Sql, until: number, now: number): Promise<Condition> {
  const [later] = await sql.query<{ n: number }>(
    'SELECT n FROM delivery WHERE received_at BETWEEN ? AND ? ORDER BY received_at, n LIMIT 1',
    [until + DISORDER_MS, now + DISORDER_MS],
  )
  return { sql: 'delivery.n < ? AND received_at < ?', values: [later?.n ?? Number.MAX_SAFE_INTEGER, until] }
}

/** Whether an entry was received when the clock was ahead of what it is `now`. */
export function isFromFuture({ receivedAt }: Pick<Summary, 'receivedAt'>, now: number): boolean {
  return receivedAt > now + DISORDER_MS
}

/** Whether an entry is looked for, apart from its text, when it was received, and how many there may be. */
export function passes(
  summary: Pick<Summary, 'event' | 'action' | 'repo' | 'forwards'>,
  filter: Filter,
): boolean {
  const { events = [], repo, status } = filter
  return (
    (repo === undefined || summary.repo?.toLowerCase() === repo.toLowerCase()) &&
    (events.length === 0 || events.some((match) => matches(match, summary))) &&
    (status === undefined || hasStatus(summary, status))
  )
}

function hasStatus({ forwards }: Pick<Summary, 'forwards'>, wanted: DeliveryStatus): boolean {
  const all = Object.values(forwards)
  if (wanted === 'none') return all.length === 0
  if (wanted === 'succeeded') return all.length > 0 && all.every(({ status }) => status === 'succeeded')
  return all.some(({ status }) => status === wanted)
}

/** Whether a forward of it has failed for good. */
export function hasFailed({ forwards }: Pick<Summary, 'forwards'>): boolean {
  return Object.values(forwards).some(({ status }) => status === 'failed')
}
