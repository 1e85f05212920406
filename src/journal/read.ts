import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../base/time.js'
import { FAILED_ATTEMPT } from '../store/schema.js'
import { marks, type Sql, type SqlValue } from '../store/sql.js'
import { DISORDER_MS, type Filter, matches, passes } from './filter.js'
import type {
  Attempt,
  Delivery,
  Due,
  Entry,
  Forward,
  ForwardCounts,
  Forwards,
  ForwardStatus,
  LastAttempt,
  Minute,
  Outcome,
  Summary,
  VerifiedBy,
  WaitingQueue,
} from './types.js'

/** Entries read at once: some milliseconds, and bounded memory. */
const PAGE = 256
/** Of bodies that are searched at once: as many as a page has if they are small, or a large one. */
const TEXT_BYTES = 524_288
/** Numbers that one query goes through where no index finds those that match. */
const WINDOW = 4096
/** The same where an index does. */
const INDEXED_WINDOW = 65_536
/** Values in one query: SQLite takes at least 999. */
const MAX_VALUES = 400

/** A step of a search through the journal. */
export interface WalkStep {
  /** What passes the filter, newest first. Often nothing, where no index helps. */
  readonly found: readonly Summary[]
  /** The numbers from here on were looked at. 0 or 1: all. */
  readonly before: number
}

interface Condition {
  readonly sql: string
  readonly values: readonly SqlValue[]
  /** Its values are the ends of the range that a query goes through. */
  readonly isRanged?: boolean
}

/** The entries that pass a filter, newest first, in steps of some milliseconds between which the event loop turns. */
export async function* walk(sql: Sql, filter: Filter, clock: Clock): AsyncGenerator<WalkStep> {
  const conditions = await conditionsOf(sql, filter, clock())
  if (!conditions) return
  const isIndexed = filter.repo !== undefined || filter.events !== undefined
  const { text } = filter
  const plain = conditions.length === 0
  const isMarked = conditions.length === 1 && MARKED.has(filter.status)
  let window = plain ? Infinity : isIndexed ? INDEXED_WINDOW : WINDOW
  let before = Math.min(filter.before ?? Infinity, (await newest(sql)) + 1)
  const first = (await oldest(sql)) ?? before
  for (let left = filter.last ?? Infinity; left > 0 && before > first;) {
    const limit = text === undefined ? Math.min(left, PAGE) : PAGE
    const from = Math.max(first, before - window)
    const entries = await select(sql, conditions, { from, before, limit, sized: text !== undefined })
    const matching =
      text === undefined ? entries.map(({ n }) => n) : await searched(sql, entries, anyCase(text))
    const found = (await summaries(sql, matching)).filter((summary) => passes(summary, filter)).slice(0, left)
    left -= found.length
    before = entries.length >= limit ? (entries.at(-1)?.n ?? from) : from
    // Where none is marked a wider step costs nothing, and a distant server has fewer to answer.
    if (isMarked) window = entries.length === 0 ? Math.min(2 * window, INDEXED_WINDOW) : WINDOW
    yield { found, before: before <= first ? 0 : before }
    await setImmediate()
  }
}

interface Range {
  readonly from: number
  readonly before: number
  readonly limit: number
  /** Whether the sizes of the bodies are asked for, which no index has. */
  readonly sized: boolean
}

/** An entry, and the bytes of its body. */
interface Sized {
  readonly n: number
  readonly size: number
}

function select(sql: Sql, conditions: readonly Condition[], range: Range): Promise<readonly Sized[]> {
  const all = conditions.map((each) => `AND (${each.sql})`).join(' ')
  const ends = [range.from, range.before]
  return sql.query<Sized>(
    `SELECT n, ${range.sized ? 'size' : '0 AS size'} FROM delivery WHERE n >= ? AND n < ? ${all} ORDER BY n DESC LIMIT ?`,
    [...ends, ...conditions.flatMap(({ values, isRanged }) => (isRanged ? ends : values)), range.limit],
  )
}

/** The conditions of a filter but for its text; undefined when nothing can pass. */
async function conditionsOf(sql: Sql, filter: Filter, now: number): Promise<Condition[] | undefined> {
  const { repo, status, since = -Infinity, until = Infinity } = filter
  const conditions: Condition[] = []
  const events = await eventsOf(sql, filter)
  if (events?.length === 0 || since === Infinity) return undefined
  if (events) conditions.push({ sql: `event IN (${marks(events.length)})`, values: events })
  if (repo !== undefined) conditions.push({ sql: 'lower(repo) = ?', values: [repo.toLowerCase()] })
  if (status !== undefined) conditions.push({ sql: STATUS[status], values: [], isRanged: MARKED.has(status) })
  if (since > -Infinity) conditions.push(await receivedSince(sql, since, now))
  if (until < Infinity) conditions.push(await receivedBefore(sql, until, now))
  return conditions
}

/** Statuses that a partial index has. Only its part for the range is read, since all of it may be a hundred thousand forwards. */
const MARKED: ReadonlySet<Filter['status']> = new Set(['failed', 'failed attempt', 'waiting'])
const FORWARDS = 'SELECT 1 FROM forward WHERE forward.n = delivery.n'
const STATUS: Readonly<Record<NonNullable<Filter['status']>, string>> = {
  failed: `n IN (SELECT n FROM forward WHERE status = 'failed' AND n >= ? AND n < ?)`,
  'failed attempt': `n IN (SELECT n FROM forward WHERE ${FAILED_ATTEMPT} AND n >= ? AND n < ?)`,
  // The targets lead the index.
  waiting: `n IN (SELECT n FROM forward WHERE status = 'waiting'
    AND target IN (SELECT target FROM target WHERE waiting > 0) AND n >= ? AND n < ?)`,
  succeeded: `EXISTS (${FORWARDS}) AND NOT EXISTS (${FORWARDS} AND status <> 'succeeded')`,
  none: `NOT EXISTS (${FORWARDS})`,
}

/** Different events of a journal, with their actions; of more, every entry is looked at. */
const MAX_EVENTS = 300

/** The events of the journal that are looked for: with them, the index finds their entries. Undefined: all are. */
async function eventsOf(sql: Sql, { events = [] }: Filter): Promise<readonly string[] | undefined> {
  if (events.length === 0 || events.some(({ text }) => text === '*' || text === '*.*')) return undefined
  // One look into the index for each event that there is.
  const rows = await sql.query<{ event: string }>(
    `WITH RECURSIVE each (event) AS (
      SELECT min(event) FROM delivery UNION ALL
      SELECT (SELECT min(event) FROM delivery WHERE delivery.event > each.event) FROM each WHERE event IS NOT NULL
    ) SELECT event FROM each WHERE event IS NOT NULL LIMIT ${MAX_EVENTS + 1}`,
  )
  if (rows.length > MAX_EVENTS) return undefined
  return rows
    .map(({ event }) => event)
    .filter((event) => events.some((match) => matches(match, split(event))))
}

/** The event and the action that are stored as one. */
function split(stored: string): Pick<Delivery, 'event' | 'action'> {
  const end = stored.indexOf('\n')
  return end === -1
    ? { event: stored, action: null }
    : { event: stored.slice(0, end), action: stored.slice(end + 1) }
}

/**
 * Received since then. Where a time cannot be right the numbers decide: an entry received when the clock was set back counts when one
 * before it counts.
 */
async function receivedSince(sql: Sql, since: number, now: number): Promise<Condition> {
  const latest = now + DISORDER_MS
  const [bounds] = await sql.query<{ first: number | null }>(
    `SELECT (SELECT min(n) FROM delivery WHERE received_at BETWEEN earliest AND earliest + ${DISORDER_MS}) AS first
      FROM (SELECT min(received_at) AS earliest FROM delivery WHERE received_at BETWEEN ? AND ?) AS edge`,
    [since, latest],
  )
  return {
    sql: 'n >= ? AND (received_at >= ? OR received_at < ?)',
    values: [bounds?.first ?? Number.MAX_SAFE_INTEGER, since, since - DISORDER_MS],
  }
}

/** Received before then. Of the entries after the first that is certainly later, none counts, even one received when the clock was set back. */
async function receivedBefore(sql: Sql, until: number, now: number): Promise<Condition> {
  const [later] = await sql.query<{ n: number }>(
    'SELECT n FROM delivery WHERE received_at BETWEEN ? AND ? ORDER BY received_at, n LIMIT 1',
    [until + DISORDER_MS, now + DISORDER_MS],
  )
  return { sql: 'n < ? AND received_at < ?', values: [later?.n ?? Number.MAX_SAFE_INTEGER, until] }
}

/** Which of these entries have the text in their body, in any case of the letters a to z, in the order given. */
export async function withText(
  sql: Sql,
  numbers: readonly number[],
  text: string,
): Promise<readonly number[]> {
  const found: number[] = []
  for (let at = 0; at < numbers.length; at += PAGE) {
    const some = numbers.slice(at, at + PAGE)
    const query = `SELECT n, size FROM delivery WHERE n IN (${marks(some.length)})`
    found.push(...(await searched(sql, await sql.query<Sized>(query, some), anyCase(text))))
  }
  return found
}

/** Those of the entries, at most {@link PAGE}, whose bodies match, in their order. */
async function searched(sql: Sql, entries: readonly Sized[], wanted: RegExp): Promise<readonly number[]> {
  const found = new Set<number>()
  for (const some of portions(entries)) {
    // Numbers in a row, as most are, take two thirds of the time that single ones do.
    const ends = [Math.min(...some), Math.max(...some)] as const
    const isRow = ends[1] - ends[0] === some.length - 1
    const query = `SELECT n, bytes FROM body WHERE n ${isRow ? 'BETWEEN ? AND ?' : `IN (${marks(some.length)})`}`
    for (const { n, bytes } of await sql.query<{ n: number; bytes: Uint8Array }>(query, isRow ? ends : some))
      if (wanted.test(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')))
        found.add(n)
    await setImmediate()
  }
  return entries.map(({ n }) => n).filter((n) => found.has(n))
}

/** The numbers of entries in portions of about {@link TEXT_BYTES}, or of one. */
function portions(entries: readonly Sized[]): readonly (readonly number[])[] {
  const all: number[][] = []
  let bytes = Infinity
  for (const { n, size } of entries) {
    bytes += size
    if (bytes > TEXT_BYTES) {
      all.push([])
      bytes = size
    }
    all.at(-1)?.push(n)
  }
  return all
}

/**
 * Matches text in bytes that are read as latin1, with A to Z in either case. Not by the flag `i`: beyond ASCII, a byte is only part of a
 * letter, and has no other case.
 */
function anyCase(text: string): RegExp {
  const chars = Array.from(Buffer.from(text), (byte) => {
    const char = String.fromCharCode(byte)
    return /[a-z]/i.test(char)
      ? `[${char.toLowerCase()}${char.toUpperCase()}]`
      : `\\x${byte.toString(16).padStart(2, '0')}`
  })
  return new RegExp(chars.join(''))
}

/** 0 when there is none. */
export async function newest(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ n: number | null }>('SELECT max(n) AS n FROM delivery')
  return row?.n ?? 0
}

async function oldest(sql: Sql): Promise<number | undefined> {
  const [row] = await sql.query<{ n: number | null }>('SELECT min(n) AS n FROM delivery')
  return row?.n ?? undefined
}

/** At most `limit` entries with a number above `n`, oldest first. */
export async function after(sql: Sql, n: number, limit: number): Promise<readonly Summary[]> {
  const query = 'SELECT n FROM delivery WHERE n > ? ORDER BY n LIMIT ?'
  return summaries(
    sql,
    (await sql.query<{ n: number }>(query, [n, limit])).map((row) => row.n),
  )
}

/** The entries with these numbers that exist, in the order of the numbers given. */
export async function summaries(sql: Sql, numbers: readonly number[]): Promise<readonly Summary[]> {
  const found = new Map<number, Summary>()
  for (let at = 0; at < numbers.length; at += MAX_VALUES) {
    const some = numbers.slice(at, at + MAX_VALUES)
    const which = `n IN (${marks(some.length)})`
    const [deliveries, forwards] = await Promise.all([
      sql.query<DeliveryRow>(`SELECT * FROM delivery WHERE ${which}`, some),
      sql.query<ForwardRow>(`SELECT * FROM forward WHERE ${which} ORDER BY n, position, target`, some),
    ])
    const byEntry = groupByEntry(forwards)
    for (const row of deliveries)
      found.set(row.n, { ...toDelivery(row), forwards: toForwards(byEntry.get(row.n) ?? []) })
  }
  return numbers.flatMap((n) => found.get(n) ?? [])
}

/** Node 20 has no Map.groupBy. */
function groupByEntry(rows: readonly ForwardRow[]): Map<number, ForwardRow[]> {
  const groups = new Map<number, ForwardRow[]>()
  for (const row of rows) {
    const group = groups.get(row.n)
    if (group) group.push(row)
    else groups.set(row.n, [row])
  }
  return groups
}

export async function read(sql: Sql, n: number): Promise<Entry | undefined> {
  const [row] = await sql.query<DeliveryRow & { bytes: Uint8Array }>(
    'SELECT delivery.*, bytes FROM delivery JOIN body ON body.n = delivery.n WHERE delivery.n = ?',
    [n],
  )
  if (!row) return undefined
  const { size: _, ...delivery } = toDelivery(row)
  return { ...delivery, body: row.bytes }
}

export async function forwards(sql: Sql, n: number): Promise<Forwards> {
  const query = 'SELECT * FROM forward WHERE n = ? ORDER BY position, target'
  return toForwards(await sql.query<ForwardRow>(query, [n]))
}

/** In the order made. */
export async function attempts(sql: Sql, n: number): Promise<readonly Attempt[]> {
  return (await sql.query<AttemptRow>('SELECT * FROM attempt WHERE n = ? ORDER BY seq', [n])).map(toAttempt)
}

/** The last attempt of each of these entries at each of its targets, without the answers, which take most of the room. */
export async function lastAttempts(sql: Sql, numbers: readonly number[]): Promise<readonly LastAttempt[]> {
  const last = new Map<string, LastAttempt>()
  for (let at = 0; at < numbers.length; at += MAX_VALUES) {
    const some = numbers.slice(at, at + MAX_VALUES)
    const query = `SELECT n, target, outcome, status, ms FROM attempt WHERE n IN (${marks(some.length)}) ORDER BY n, seq`
    for (const row of await sql.query<LastAttempt>(query, some)) last.set(`${row.n} ${row.target}`, row)
  }
  return [...last.values()]
}

/** The oldest forwards that wait for a target, without those of these entries. */
export async function next(
  sql: Sql,
  target: string,
  limit: number,
  except: Iterable<number>,
): Promise<readonly Due[]> {
  const busy = [...except]
  const rest = busy.length === 0 ? '' : `AND n NOT IN (${marks(busy.length)})`
  const rows = await sql.query<ForwardRow & { earlier: number }>(
    `SELECT *, (SELECT coalesce(sum(count), 0) FROM attempt WHERE attempt.n = forward.n AND attempt.target = forward.target) AS earlier
      FROM forward WHERE target = ? AND status = 'waiting' ${rest} ORDER BY n LIMIT ?`,
    [target, ...busy, limit],
  )
  return rows.map((row) => ({ n: row.n, forward: toForward(row), earlier: row.earlier }))
}

/** Those of the delivery ids that the journal has, under any hook. */
export async function known(sql: Sql, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const found = new Set<string>()
  for (let at = 0; at < ids.length; at += MAX_VALUES) {
    const some = ids.slice(at, at + MAX_VALUES)
    const query = `SELECT delivery_id AS id FROM delivery WHERE delivery_id IN (${marks(some.length)})`
    for (const { id } of await sql.query<{ id: string }>(query, some)) found.add(id)
  }
  return found
}

/** The instant from which on nothing was removed, `now` at the latest: a clock may have been ahead; -Infinity when nothing ever was. */
export async function keptSince(sql: Sql, now: number): Promise<number> {
  const [row] = await sql.query<{ until: number }>('SELECT until FROM removed')
  return row ? Math.min(row.until + 1, now) : -Infinity
}

/** How many forwards to each target have which status. */
export async function counts(sql: Sql): Promise<ReadonlyMap<string, ForwardCounts>> {
  const rows = await sql.query<ForwardCounts & { readonly target: string }>('SELECT * FROM target')
  return new Map(
    rows.map(({ target, waiting, succeeded, failed }) => [target, { waiting, succeeded, failed }]),
  )
}

/** What waits for each target. */
export async function queues(sql: Sql): Promise<ReadonlyMap<string, WaitingQueue>> {
  const rows = await sql.query<WaitingQueue & { readonly target: string }>(
    `SELECT target, waiting, (SELECT since FROM forward WHERE forward.target = target.target AND status = 'waiting'
      ORDER BY n LIMIT 1) AS oldest FROM target WHERE waiting > 0`,
  )
  return new Map(rows.map(({ target, waiting, oldest }) => [target, { waiting, oldest }]))
}

/** The number of entries. */
export async function count(sql: Sql): Promise<number> {
  const [row] = await sql.query<{ count: number }>('SELECT coalesce(sum(received), 0) AS count FROM minute')
  return row?.count ?? 0
}

/** The minutes of this span, in milliseconds, in which deliveries were received. */
export async function minutes(sql: Sql, from: number, until: number): Promise<readonly Minute[]> {
  const [first, last] = [Math.floor(from / 60_000), Math.ceil(until / 60_000)]
  const query =
    'SELECT minute, received, failed FROM minute WHERE minute >= ? AND minute < ? AND received > 0 ORDER BY minute'
  return sql.query<Minute>(query, [first, last])
}

interface DeliveryRow {
  readonly n: number
  readonly received_at: number
  readonly source: string
  readonly verified: string
  readonly event: string
  readonly repo: string | null
  readonly number: number | null
  readonly ref: string | null
  readonly delivery_id: string
  readonly hook_id: string
  readonly restored: string | null
  readonly headers: string
  readonly size: number
  readonly duplicates: number
  readonly ignored_by: string | null
}

interface ForwardRow {
  readonly n: number
  readonly target: string
  readonly status: string
  readonly tries: number
  readonly since: number
  readonly reason: string | null
}

interface AttemptRow {
  readonly target: string
  readonly at: number
  readonly outcome: string
  readonly status: number | null
  readonly ms: number
  readonly answer: Uint8Array
  readonly headers: string | null
  readonly error: string | null
  readonly count: number
}

function toDelivery(row: DeliveryRow): Omit<Summary, 'forwards'> {
  const { n, repo, number, ref, restored, size, duplicates, ignored_by: ignoredBy } = row
  return {
    n,
    receivedAt: row.received_at,
    provider: row.source,
    ...split(row.event),
    deliveryId: row.delivery_id,
    hookId: row.hook_id,
    headers: JSON.parse(row.headers),
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this program writes the column
    verifiedBy: row.verified as VerifiedBy,
    repo,
    number,
    ...(ref !== null && { ref }),
    ...(restored !== null && { restored: JSON.parse(restored) }),
    size,
    duplicates,
    ...(ignoredBy !== null && { ignoredBy }),
  }
}

function toForward({ status, tries, since, reason }: ForwardRow): Forward {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this program writes the column
  return { status: status as ForwardStatus, tries, since, ...(reason !== null && { reason }) }
}

/** From entries, because a target's id is any text: `__proto__` would be lost as a key that is assigned. */
function toForwards(rows: readonly ForwardRow[]): Forwards {
  return Object.fromEntries(rows.map((row) => [row.target, toForward(row)]))
}

function toAttempt({ outcome, headers, ...row }: AttemptRow): Attempt {
  const { target, at, status, ms, answer, error, count: times } = row
  const given = headers === null ? {} : { headers: JSON.parse(headers) }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this program writes the column
  return { target, at, outcome: outcome as Outcome, status, ms, answer, ...given, error, count: times }
}
