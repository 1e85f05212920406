import type { Sql, SqlValue } from '../store/sql.js'
import type { Summary } from './delivery.js'
import { type Match, matches } from './match.js'

/** What is looked for; everything given must hold. */
export interface Filter {
  /** Any one of them; an empty list is the same as none given. */
  readonly events?: readonly Match[]
  /** `owner/name`, in any case. */
  readonly repo?: string
  /** Received at or after this instant, in milliseconds; Infinity: only what comes from now on. */
  readonly since?: number
  /** Those, or those not, with a forward that failed. */
  readonly failed?: boolean
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
interface Condition {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

/** The numbers of up to `limit` entries below `before` that pass the filter, newest first. `now` is the wall clock's instant. */
export async function selectNumbers(
  sql: Sql,
  { events = [], repo, since = -Infinity, failed }: Filter,
  { before, limit, now }: { readonly before: number; readonly limit: number; readonly now: number },
): Promise<readonly number[]> {
  const common: Condition[] = [{ sql: 'delivery.n < ?', values: [before] }]
  if (repo !== undefined) common.push({ sql: 'lower(repo) = ?', values: [repo.toLowerCase()] })
  if (since > -Infinity) common.push(await receivedSince(sql, since, now))
  if (failed === false)
    common.push({
      sql: `NOT EXISTS (SELECT 1 FROM forward WHERE forward.n = delivery.n AND status = 'failed')`,
      values: [],
    })
  // Failed forwards are few: they are the table to begin with, which a cross join fixes.
  const from = failed
    ? `forward CROSS JOIN delivery WHERE forward.status = 'failed' AND delivery.n = forward.n AND`
    : 'delivery WHERE'
  const column = failed ? 'DISTINCT forward.n AS n' : 'delivery.n AS n'
  const order = failed ? 'forward.n' : 'delivery.n'
  // One query for each event, because each then reads only as many rows of the index as are wanted.
  const queries = alternatives(events).map((alternative): Condition => {
    const all = [...common, ...alternative]
    return {
      sql: `SELECT n FROM (SELECT ${column} FROM ${from} ${all.map((each) => `(${each.sql})`).join(' AND ')} ORDER BY ${order} DESC LIMIT ?) AS page`,
      values: [...all.flatMap(({ values }) => values), limit],
    }
  })
  const rows = await sql.query<{ n: number }>(
    `${queries.map((query) => query.sql).join(' UNION ')} ORDER BY n DESC LIMIT ?`,
    [...queries.flatMap(({ values }) => values), limit],
  )
  return rows.map(({ n }) => n)
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
 * when one before it counts, and one from the future counts unless one after it is too old.
 */
async function receivedSince(sql: Sql, since: number, now: number): Promise<Condition> {
  const latest = now + DISORDER_MS
  const tooOld = since - DISORDER_MS
  if (since === Infinity) return { sql: 'FALSE', values: [] }
  const [bounds] = await sql.query<{ first: number | null; future: number }>(
    `SELECT (SELECT min(n) FROM delivery WHERE received_at BETWEEN ? AND ?) AS first,
      EXISTS (SELECT 1 FROM delivery WHERE received_at > ?) AS future`,
    [since, latest, latest],
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

/** Whether an entry was received when the clock was ahead of what it is `now`. */
export function isFromFuture({ receivedAt }: Pick<Summary, 'receivedAt'>, now: number): boolean {
  return receivedAt > now + DISORDER_MS
}

/** Whether an entry is looked for, apart from when it was received and how many there may be. */
export function passes(
  summary: Pick<Summary, 'event' | 'action' | 'repo' | 'forwards'>,
  filter: Filter,
): boolean {
  const { events = [], repo, failed } = filter
  return (
    (repo === undefined || summary.repo?.toLowerCase() === repo.toLowerCase()) &&
    (events.length === 0 || events.some((match) => matches(match, summary))) &&
    (failed === undefined || failed === hasFailed(summary))
  )
}

/** Whether a forward of it has failed for good. */
export function hasFailed({ forwards }: Pick<Summary, 'forwards'>): boolean {
  return Object.values(forwards).some(({ status }) => status === 'failed')
}
