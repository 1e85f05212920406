import { setImmediate } from 'node:timers/promises'
import { type Clock, systemClock } from '../base/time.js'
import { FAILED_ATTEMPT, WAITS_AGAIN, WAITS_FIRST } from '../store/schema.js'
import { placeholders, type Sql, type SqlValue } from '../store/sql.js'
import { alternatives, eventMatching, type Filter, matches, matchesFilter } from './filter.js'
import {
  type Attempt,
  type DueForward,
  type Entry,
  type NamedEvent,
  type Forward,
  type ForwardCounts,
  type LastAttempt,
  type MinuteCounts,
  STORED_BYTES,
  type Summary,
  type TargetCounts,
  type Waiting,
} from './types.js'
import type { deliveryColumns } from './write.js'

/** Entries read at once: some milliseconds, and bounded memory. */
const PAGE = 256
/** Entries read at once if their bodies are searched. */
const TEXT_PAGE = 128
/** Index entries by time in one query, which takes a millisecond. */
const TIME_STEP = 5000
/** Entries of one minute that are counted, in some milliseconds. The busiest minutes of a workstation have fewer. */
const MAX_OF_MINUTE = 10_000
const MINUTE_MS = 60_000
/** Range of numbers in one query, which takes some milliseconds without an index. */
const WINDOW = 4096
/** Bytes of bodies searched at once, in 2 milliseconds: a page of small ones, or one large one. */
const TEXT_BYTES = 131_072
/** Most values in one query: SQLite allows at least 999. */
const MAX_VALUES = 400
/** Most different events, with their actions, for which the index is used. With more, every entry is read. */
const MAX_EVENTS = 300
/**
 * Largest correction of a clock. An entry received later than that from now was stored while the clock was wrong.
 * Milliseconds.
 */
const CORRECTION_MS = 60_000

/** One step of a search through the journal. */
export interface WalkStep {
  /** Matching entries, newest first. Often empty if no index helps. */
  readonly found: readonly Summary[]
  /** Number from which on all entries were examined. 0: all entries were. */
  readonly before: number
}

/** Queries of the journal. They work in any process, also while others write. Removed entries are left out. */
export class JournalQueries {
  // Private also at run time: with the database, a program that embeds relay could write entries without proof.
  readonly #sql: Pick<Sql, 'query'>
  readonly #clock: Clock

  constructor(sql: Pick<Sql, 'query'>, clock: Clock = systemClock) {
    this.#sql = sql
    this.#clock = clock
  }

  async read(n: number): Promise<Entry | undefined> {
    const [row] = await this.#sql.query<WholeRow>(
      'SELECT delivery.*, bytes FROM delivery JOIN body ON body.n = delivery.n WHERE delivery.n = ?',
      [n],
    )
    return row && toEntry(row)
  }

  /** Reads an entry that is sent to a target, with the number of earlier attempts. */
  async readToSend(
    target: string,
    n: number,
  ): Promise<{ readonly entry: Entry; readonly earlier: number } | undefined> {
    const [row] = await this.#sql.query<WholeRow & { earlier: number }>(
      `SELECT delivery.*, bytes, (SELECT coalesce(sum(count), 0) FROM attempt
          WHERE attempt.n = delivery.n AND target = ?) AS earlier
        FROM delivery JOIN body ON body.n = delivery.n WHERE delivery.n = ?`,
      [target, n],
    )
    return row && { entry: toEntry(row), earlier: row.earlier }
  }

  /** Number of the newest entry, or 0. */
  async newest(): Promise<number> {
    const [row] = await this.#sql.query<{ n: number | null }>('SELECT max(n) AS n FROM delivery')
    return row?.n ?? 0
  }

  /** Number of entries. */
  async count(): Promise<number> {
    // Numbers have no gaps but those that removed entries left.
    const query = 'SELECT (SELECT max(n) FROM delivery) - entries AS count FROM removed'
    const [row] = await this.#sql.query<{ count: number | null }>(query)
    return row?.count ?? 0
  }

  /** Reads at most `limit` entries with numbers above `n`, oldest first. */
  async after(n: number, limit: number): Promise<readonly Summary[]> {
    const query = 'SELECT * FROM delivery WHERE n > ? ORDER BY n LIMIT ?'
    return this.#summaries(await this.#sql.query<DeliveryRow>(query, [n, limit]))
  }

  /** Reads the existing entries with these numbers, in the given order. */
  async summaries(numbers: readonly number[]): Promise<readonly Summary[]> {
    const rows = await this.#among<DeliveryRow>(
      (which) => `SELECT * FROM delivery WHERE n IN ${which}`,
      numbers,
    )
    const byNumber = new Map(rows.map((row) => [row.n, row]))
    return this.#summaries(numbers.flatMap((n) => byNumber.get(n) ?? []))
  }

  /** Yields the entries that match the filter, newest first. Reads only as far as it is iterated. */
  async *select(filter: Filter = {}): AsyncGenerator<Summary> {
    for await (const { found } of this.walk(filter)) yield* found
  }

  /**
   * {@link select} in steps of some milliseconds, for a caller that may stop before a match is found. The event loop
   * turns between steps.
   */
  async *walk(filter: Filter): AsyncGenerator<WalkStep> {
    const { status, repo, source, text, since = -Infinity, until = Infinity } = filter
    const events = await this.#eventsOf(filter)
    if (events?.length === 0) return
    const values = [
      ...(events ?? []),
      ...(repo === undefined ? [] : [repo.toLowerCase()]),
      ...(source === undefined ? [] : [source]),
    ]
    const ranges = status === undefined ? 0 : (STATUS[status].split('?').length - 1) / 2
    const condition = [
      events ? `AND event IN (${placeholders(events.length)})` : '',
      repo === undefined ? '' : 'AND lower(repo) = ?',
      source === undefined ? '' : 'AND source = ?',
      status === undefined ? '' : `AND ${STATUS[status]}`,
    ].join(' ')
    const query = `SELECT * FROM delivery WHERE n >= ? AND n < ? ${condition} ORDER BY n DESC LIMIT ?`
    const end = (await this.newest()) + 1
    const first = (since === -Infinity ? (await this.after(0, 1))[0]?.n : await this.firstSince(since)) ?? end
    let before = Math.min(filter.before ?? end, end)
    if (until < Infinity) before = Math.min(before, (await this.firstSince(until)) ?? end)
    for (let left = filter.last ?? Infinity; left > 0 && before > first;) {
      const limit = text === undefined ? Math.min(left, PAGE) : TEXT_PAGE
      const from = Math.max(first, before - WINDOW)
      const ends = [from, before]
      const all = [...ends, ...values, ...Array.from({ length: ranges }, () => ends).flat(), limit]
      const rows = await this.#sql.query<DeliveryRow>(query, all)
      const withText = text === undefined ? undefined : await this.#withText(rows, text)
      const matching = withText ? rows.filter(({ n }) => withText.has(n)) : rows
      const summaries = await this.#summaries(matching)
      const found = summaries.filter((summary) => matchesFilter(summary, filter)).slice(0, left)
      left -= found.length
      before = rows.length >= limit ? (rows.at(-1)?.n ?? from) : from
      yield { found, before: before <= first ? 0 : before }
      await setImmediate()
    }
  }

  /** Selects the entries whose body contains the text. The case of the letters a to z is ignored. */
  async withText(numbers: readonly number[], text: string): Promise<ReadonlySet<number>> {
    const query = (which: string): string => `SELECT n, size FROM delivery WHERE n IN ${which}`
    return this.#withText(await this.#among(query, numbers), text)
  }

  /** Attempts of an entry, in order. */
  async attempts(n: number): Promise<readonly Attempt[]> {
    const query = 'SELECT * FROM attempt WHERE n = ? ORDER BY seq'
    return (await this.#sql.query<AttemptRow>(query, [n])).map(toAttempt)
  }

  /** Last attempt of each of these entries at each of its targets. */
  async lastAttempts(numbers: readonly number[]): Promise<readonly LastAttempt[]> {
    // Without the responses, which are most of the data.
    const query = (which: string): string =>
      `SELECT n, target, outcome, status, ms FROM attempt WHERE n IN ${which} ORDER BY n, seq`
    const rows = await this.#among<LastAttempt>(query, numbers)
    return [...new Map(rows.map((row) => [`${row.n} ${row.target}`, row])).values()]
  }

  /**
   * Reads what waits for a target, without the entries `except`: at most `limit` forwards that were not tried, and as
   * many to be tried again. For a target with strict order, the latter are the oldest instead of the earliest.
   */
  async next(
    target: string,
    { limit, except, ordered }: { limit: number; except: Iterable<number>; ordered: boolean },
  ): Promise<Waiting> {
    const busy = [...except]
    const rest = busy.length === 0 ? '' : `AND n NOT IN (${placeholders(busy.length)})`
    const some = (which: string, order: string): string =>
      `SELECT * FROM (SELECT * FROM forward WHERE target = ? AND ${which} ${rest} ORDER BY ${order} LIMIT ?) AS part`
    const values = [target, ...busy, limit]
    const rows = await this.#sql.query<ForwardRow>(
      `${some(WAITS_FIRST, 'n')} UNION ALL ${some(WAITS_AGAIN, ordered ? 'n' : 'due, n')}`,
      [...values, ...values],
    )
    const again = rows.filter(({ due }) => due > 0)
    const unanswered = await this.#unanswered(target, again)
    return {
      first: rows.filter(({ due }) => due === 0).map((row) => toDueForward(row)),
      again: again.map((row) => toDueForward(row, unanswered.has(row.n))),
    }
  }

  /** Those of some forwards to a target whose last attempt was not answered in time. */
  async #unanswered(target: string, forwards: readonly ForwardRow[]): Promise<ReadonlySet<number>> {
    if (forwards.length === 0) return new Set()
    const rows = await this.#sql.query<{ n: number }>(
      `SELECT n FROM attempt AS last WHERE target = ? AND n IN (${placeholders(forwards.length)}) AND outcome = 'timed out'
        AND seq = (SELECT max(seq) FROM attempt WHERE attempt.n = last.n AND attempt.target = last.target)`,
      [target, ...forwards.map(({ n }) => n)],
    )
    return new Set(rows.map(({ n }) => n))
  }

  /**
   * Reads the oldest entries that wait for a target and were not tried, with their bodies: at most `count`, and at most
   * `bytes` of them, as `storedBytes` counts them, unless the first alone is larger.
   */
  async oldest(
    target: string,
    { count, bytes }: { readonly count: number; readonly bytes: number },
  ): Promise<readonly Entry[]> {
    const sizes = await this.#sql.query<{ n: number; size: number }>(
      `SELECT forward.n, ${STORED_BYTES} AS size FROM forward JOIN delivery ON delivery.n = forward.n
        WHERE target = ? AND ${WAITS_FIRST} ORDER BY forward.n LIMIT ?`,
      [target, count],
    )
    let total = 0
    const chosen = sizes.filter(({ size }, i) => (total += size) <= bytes || i === 0).map(({ n }) => n)
    const rows = await this.#among<WholeRow>(
      (which) => `SELECT delivery.*, bytes FROM delivery JOIN body ON body.n = delivery.n
        WHERE delivery.n IN ${which} ORDER BY delivery.n`,
      chosen,
    )
    return rows.map(toEntry)
  }

  /** Bytes of all entries that wait for a target and were not tried, as `storedBytes` counts them. */
  async waitingBytes(target: string): Promise<number> {
    const [row] = await this.#sql.query<{ bytes: number }>(
      `SELECT coalesce(sum(${STORED_BYTES}), 0) AS bytes FROM forward JOIN delivery ON delivery.n = forward.n
        WHERE target = ? AND ${WAITS_FIRST}`,
      [target],
    )
    return row?.bytes ?? 0
  }

  /** Reads the forward of an entry to a target, if it waits. */
  async waiting(target: string, n: number): Promise<DueForward | undefined> {
    const [row] = await this.#sql.query<ForwardRow>(
      "SELECT * FROM forward WHERE n = ? AND target = ? AND status = 'waiting'",
      [n, target],
    )
    return row && toDueForward(row, (await this.#unanswered(target, [row])).has(n))
  }

  /** Names that targets had when they were last configured. */
  async targetNames(): Promise<readonly { readonly id: string; readonly name: string }[]> {
    return await this.#sql.query('SELECT target AS id, name FROM target WHERE name IS NOT NULL')
  }

  /** Counts the forwards to each target by status, with the start of the longest wait. */
  async counts(): Promise<ReadonlyMap<string, TargetCounts>> {
    const rows = await this.#sql.query<
      ForwardCounts & {
        readonly target: string
        readonly first: number | null
        readonly again: number | null
      }
    >(
      `SELECT target, waiting, succeeded, failed,
        (SELECT since FROM forward WHERE forward.target = target.target AND ${WAITS_FIRST} ORDER BY n LIMIT 1) AS first,
        (SELECT since FROM forward WHERE forward.target = target.target AND ${WAITS_AGAIN} ORDER BY n LIMIT 1) AS again
        FROM target`,
    )
    return new Map(
      rows.map(({ target, first, again, ...counts }) => {
        const oldest = Math.min(first ?? Infinity, again ?? Infinity)
        return [target, { ...counts, oldest: oldest === Infinity ? null : oldest }]
      }),
    )
  }

  /**
   * Counts the deliveries received in each minute of a span, oldest first. `from` and `until` are in milliseconds, each at the start of
   * a minute. Minutes without any delivery are left out.
   */
  async minutes(from: number, until: number): Promise<readonly MinuteCounts[]> {
    const minutes: MinuteCounts[] = []
    for (let end = until; ;) {
      const [newest] = await this.#sql.query<{ at: number | null }>(
        'SELECT max(received_at) AS at FROM delivery WHERE received_at >= ? AND received_at < ?',
        [from, end],
      )
      if (typeof newest?.at !== 'number') return minutes.toReversed()
      const minute = Math.floor(newest.at / MINUTE_MS)
      const [row] = await this.#sql.query<Omit<MinuteCounts, 'minute'>>(
        `SELECT count(*) AS received, count(CASE WHEN EXISTS (
            SELECT 1 FROM forward WHERE forward.n = entry.n AND ${FAILED_ATTEMPT}) THEN 1 END) AS failed
          FROM (SELECT n FROM delivery WHERE received_at >= ? AND received_at < ? LIMIT ${MAX_OF_MINUTE}) AS entry`,
        [minute * MINUTE_MS, end],
      )
      if (row) minutes.push({ minute, ...row })
      end = minute * MINUTE_MS
      await setImmediate()
    }
  }

  /** Finds known delivery ids, under any hook, with the newest entry of each. */
  async known(deliveryIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const query = (which: string): string =>
      `SELECT delivery_id AS id, n FROM delivery WHERE delivery_id IN ${which} ORDER BY n`
    const rows = await this.#among<{ id: string; n: number }>(query, deliveryIds)
    return new Map(rows.map(({ id, n }) => [id, n]))
  }

  /** Instant since which nothing was removed, now at the latest, because a clock may have been ahead. */
  async keptSince(): Promise<number> {
    const [row] = await this.#sql.query<{ until: number }>('SELECT until FROM removed')
    return Math.min((row?.until ?? 0) + 1, this.#clock())
  }

  /** Number of the first entry received at this instant or later. Undefined if there is none. */
  protected async firstSince(instant: number): Promise<number | undefined> {
    // A clock may have been wrong, so the first entry by time need not have the lowest number.
    const query = `SELECT min(n) AS n, max(received_at) AS last, count(*) AS count FROM
      (SELECT n, received_at FROM delivery WHERE received_at BETWEEN ? AND ? ORDER BY received_at, n LIMIT ${TIME_STEP}) AS step`
    const end = this.#clock() + CORRECTION_MS
    let first = Infinity
    for (let from = Math.min(Math.max(instant, 0), Number.MAX_SAFE_INTEGER); ;) {
      const [row] = await this.#sql.query<{ n: number | null; last: number; count: number }>(query, [
        from,
        end,
      ])
      first = Math.min(first, row?.n ?? Infinity)
      if (!row || row.count < TIME_STEP) return first === Infinity ? undefined : first
      // The lowest number of entries with the same time was already found.
      from = row.last + 1
      await setImmediate()
    }
  }

  /** Reads the rows in which a column has one of the values. */
  async #among<Row extends object>(
    query: (which: string) => string,
    values: readonly SqlValue[],
  ): Promise<Row[]> {
    const rows: Row[] = []
    for (let at = 0; at < values.length; at += MAX_VALUES) {
      const some = values.slice(at, at + MAX_VALUES)
      rows.push(...(await this.#sql.query<Row>(query(`(${placeholders(some.length)})`), some)))
    }
    return rows
  }

  async #summaries(rows: readonly DeliveryRow[]): Promise<readonly Summary[]> {
    const forwards = await this.#among<ForwardRow>(
      (which) => `SELECT * FROM forward WHERE n IN ${which} ORDER BY n, position, target`,
      rows.map(({ n }) => n),
    )
    // Node 20 has no Map.groupBy.
    const byEntry = new Map<number, [string, Forward][]>(rows.map(({ n }) => [n, []]))
    for (const row of forwards) byEntry.get(row.n)?.push([row.target, toForward(row)])
    // Built from entries, because a target's id is any text: assigning the key `__proto__` would lose it.
    return rows.map((row) => ({
      ...toDelivery(row),
      forwards: Object.fromEntries(byEntry.get(row.n) ?? []),
    }))
  }

  /** Events of the journal that match the filter, with which the index finds their entries. Undefined: all events. */
  async #eventsOf({ events = [] }: Filter): Promise<readonly string[] | undefined> {
    if (events.length === 0 || events.some(({ text }) => text === '*' || text === '*.*')) return undefined
    // One index look-up for each existing event.
    const rows = await this.#sql.query<{ event: string }>(
      `WITH RECURSIVE each (event) AS (
        SELECT min(event) FROM delivery UNION ALL
        SELECT (SELECT min(event) FROM delivery WHERE delivery.event > each.event) FROM each WHERE event IS NOT NULL
      ) SELECT event FROM each WHERE event IS NOT NULL LIMIT ${MAX_EVENTS + 1}`,
    )
    if (rows.length > MAX_EVENTS) return undefined
    const all = rows.map(({ event }) => event)
    // The index does not include the source, so events of other sources are filtered out later.
    const each = events.flatMap(alternatives)
    return all.filter((event) =>
      each.some((match) => matches(match, { ...split(event), provider: eventMatching(match).provider })),
    )
  }

  async #withText(
    entries: readonly Pick<DeliveryRow, 'n' | 'size'>[],
    text: string,
  ): Promise<ReadonlySet<number>> {
    const wanted = anyCase(text)
    const found = new Set<number>()
    for (let at = 0; at < entries.length;) {
      const some: number[] = []
      for (let bytes = 0; bytes < TEXT_BYTES && some.length < MAX_VALUES && at < entries.length; at++) {
        some.push(entries[at]?.n ?? 0)
        bytes += entries[at]?.size ?? 0
      }
      const query = `SELECT n, bytes FROM body WHERE n IN (${placeholders(some.length)})`
      await setImmediate()
      for (const { n, bytes } of await this.#sql.query<{ n: number; bytes: Uint8Array }>(query, some))
        if (wanted.test(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')))
          found.add(n)
    }
    return found
  }
}

const FORWARDS = 'SELECT 1 FROM forward WHERE forward.n = delivery.n'
/** Conditions for a status. If an index finds the entries, each `?` is an end of the query's range of numbers. */
const STATUS: Readonly<Record<NonNullable<Filter['status']>, string>> = {
  failed: `n IN (SELECT n FROM forward WHERE status = 'failed' AND n >= ? AND n < ?)`,
  'failed attempt': `n IN (SELECT n FROM forward WHERE ${FAILED_ATTEMPT} AND n >= ? AND n < ?)`,
  // The index of those that were not tried begins with the target; the others are in the index of failed attempts.
  waiting: `(n IN (SELECT n FROM forward WHERE ${WAITS_FIRST}
      AND target IN (SELECT target FROM target WHERE waiting > 0) AND n >= ? AND n < ?)
    OR n IN (SELECT n FROM forward WHERE tries > 0 AND ${WAITS_AGAIN} AND n >= ? AND n < ?))`,
  succeeded: `EXISTS (${FORWARDS}) AND NOT EXISTS (${FORWARDS} AND status <> 'succeeded')`,
  none: `NOT EXISTS (${FORWARDS})`,
}

/** Splits the stored event into event and action. */
function split(stored: string): NamedEvent {
  const [event = '', ...action] = stored.split('\n')
  return { event, action: action.length === 0 ? null : action.join('\n') }
}

/**
 * Creates a pattern for text in bytes decoded as latin1, with A to Z in either case. The flag `i` is not used: beyond
 * ASCII, a byte is only part of a letter, and has no other case.
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

type DeliveryRow = ReturnType<typeof deliveryColumns> & {
  readonly n: number
  readonly duplicates: number
  readonly ignored_by: string | null
}

type WholeRow = DeliveryRow & { readonly bytes: Uint8Array }

function toEntry(row: WholeRow): Entry {
  const { size: _, ...delivery } = toDelivery(row)
  return { ...delivery, body: row.bytes }
}

interface ForwardRow extends Omit<Forward, 'reason' | 'due'> {
  readonly n: number
  readonly due: number
  readonly target: string
  readonly reason: string | null
}

interface AttemptRow extends Omit<Attempt, 'headers'> {
  readonly headers: string | null
}

function toDelivery(row: DeliveryRow): Omit<Summary, 'forwards'> {
  const { n, repo, number, kind, ref, query, restored, size, duplicates, ignored_by: ignoredBy } = row
  return {
    n,
    receivedAt: row.received_at,
    provider: row.source,
    ...(row.scheme !== row.source && { scheme: row.scheme }),
    ...split(row.event),
    deliveryId: row.delivery_id,
    hookId: row.hook_id,
    headers: JSON.parse(row.headers),
    verifiedBy: row.verified,
    repo,
    number,
    ...(kind !== null && { kind }),
    ...(ref !== null && { ref }),
    ...(query !== null && { query }),
    ...(restored !== null && { restored: JSON.parse(restored) }),
    size,
    duplicates,
    ...(ignoredBy !== null && { ignoredBy }),
  }
}

function toForward({ status, tries, since, due, reason }: ForwardRow): Forward {
  return { status, tries, since, ...(due > 0 && { due }), ...(reason !== null && { reason }) }
}

function toDueForward(row: ForwardRow, isUnanswered = false): DueForward {
  return { n: row.n, forward: toForward(row), isUnanswered }
}

function toAttempt({ target, at, outcome, status, ms, answer, headers, error, count }: AttemptRow): Attempt {
  const given = headers === null ? {} : { headers: JSON.parse(headers) }
  return { target, at, outcome, status, ms, answer, ...given, error, count }
}
