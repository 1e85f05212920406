import { MAX_START } from '../base/bytes.js'
import { FAILED_ATTEMPT } from '../store/schema.js'
import {
  ask,
  askAll,
  marks,
  execute,
  type SqlRow,
  type SqlValue,
  type Statement,
  type Tx,
} from '../store/sql.js'
import {
  type Attempt,
  type Delivery,
  type Forward,
  type ForwardStatus,
  isFailedAttempt,
  MAX_ERROR,
  type Minute,
  type OnDuplicate,
  type Plan,
  type Receipt,
} from './types.js'

/**
 * The key under which a delivery is known: source and delivery id. GitHub gives one event the same id for every hook that gets it, so that
 * the second hook of a repository brings a duplicate. Ids, not digests: GitHub's begin with the time, so a burst writes one page.
 *
 * One that came through a tunnel is known by what was signed: the ids are not signed, and anyone with the tunnel's address could send a body
 * again under others, or spoil an id before the delivery comes that has it. Where the payload does not prove the event, the event takes part,
 * so that a copy under another does not take the place of the genuine one. Where the code host can send the same bytes again for something
 * new, the id does.
 */
function keyOf(delivery: Delivery): string {
  const { provider, deliveryId, restored } = delivery
  if (!restored) return `${provider} ${deliveryId}`
  const { sha256, unproved, repeatable } = restored
  if (unproved) return `body:${sha256} ${eventOf(delivery)}`
  return repeatable ? `body:${sha256} ${deliveryId}` : `body:${sha256}`
}

/** The event as it is stored: with its action, which only a code host has. An event may have dots, and never a line feed. */
export function eventOf({ event, action }: Pick<Delivery, 'event' | 'action'>): string {
  return action === null ? event : `${event}\n${action}`
}

type Known = {
  readonly n: number
  readonly key: string
  readonly delivery_id: string
  readonly event: string
  readonly repo: string | null
  readonly number: number | null
  readonly hook_id: string
  readonly ignored_by: string | null
}

const KNOWN = 'SELECT n, key, delivery_id, event, repo, number, hook_id, ignored_by FROM delivery WHERE'

/** A delivery to record, and what becomes of it. */
export interface Appended {
  readonly delivery: Delivery
  readonly plan: Plan
}

/** An entry to insert. */
interface New {
  readonly row: Known & ReturnType<typeof rowOf>
  readonly bytes: Uint8Array
  readonly targets: readonly string[]
}

/**
 * Records deliveries and their forwards, in their order. What is there already is a duplicate: it changes nothing unless it is forwarded
 * again, so that it costs no flush. One that another hook (or the App) brought is never forwarded again, whatever the rule: one event
 * runs once.
 */
export function* append(all: readonly Appended[]): Tx<readonly Receipt[]> {
  const keys = padded(all.map(({ delivery }) => keyOf(delivery)))
  const ids = padded(all.map(({ delivery }) => delivery.deliveryId))
  // Through a tunnel the key is a digest, and two hooks may send different bytes. The newest entry is there for its number.
  const found = yield* ask<Known>(
    `${KNOWN} key IN (${marks(keys.length)})
      UNION ALL ${KNOWN} delivery_id IN (${marks(ids.length)}) AND hook_id <> ''
      UNION ALL ${KNOWN} n = (SELECT max(n) FROM delivery)`,
    ...keys,
    ...ids,
  )
  const entries = [...found]
  let n = Math.max(0, ...found.map((each) => each.n))
  const added: New[] = []
  const again: { readonly at: number; readonly work: Tx<Receipt> }[] = []
  const receipts = all.map(({ delivery, plan }, at): Receipt => {
    const key = keyOf(delivery)
    const isAlike = (each: Known): boolean => each.key === key || each.delivery_id === delivery.deliveryId
    const other = entries.find((each) => isAlike(each) && isOfAnotherHook(each, delivery))
    if (other) return { n: other.n, duplicate: true, targets: [] }
    const known = entries.find((each) => each.key === key)
    if (known) {
      again.push({ at, work: appendAgain(known, delivery, plan) })
      return { n: known.n, duplicate: true, targets: [] }
    }
    const row = { n: ++n, key, ...rowOf(delivery), ignored_by: plan.ignoredBy ?? null }
    const targets = [...new Set(plan.targets)]
    entries.push(row)
    added.push({ row, bytes: delivery.body, targets })
    return { n, duplicate: false, targets, ...ignoredBy(row) }
  })
  yield* execute(...insertNew(added))
  for (const { at, work } of again) receipts[at] = yield* work
  return receipts
}

function ignoredBy({ ignored_by: text }: Known): Pick<Receipt, 'ignoredBy'> {
  return text === null ? {} : { ignoredBy: text }
}

/** As many as a power of two, with the first again and again: few texts of statements, so that connections keep them prepared. */
function padded(values: readonly string[]): string[] {
  const count = 2 ** Math.ceil(Math.log2(values.length))
  return Array.from({ length: count }, (_, i) => values[i] ?? values[0] ?? '')
}

/** Adds targets that are new, or failed, by the rule; never those of another event, which is not signed. */
function* appendAgain(found: Known, delivery: Delivery, plan: Plan): Tx<Receipt> {
  const isSameEvent = found.event === eventOf(delivery) && plan.ignoredBy === undefined
  const wanted = isSameEvent ? plan.targets : []
  const targets = yield* waitAgain(found.n, wanted, plan.onDuplicate, delivery.receivedAt)
  return { n: found.n, duplicate: true, targets, ...ignoredBy(found) }
}

/** The rows are inserted together: a statement for each would take a round trip's share of PostgreSQL's time. */
function insertNew(all: readonly New[]): Statement[] {
  const rows = all.map(({ row }) => row)
  const minutes = counted(rows.map((row) => minuteOf(row.received_at)))
  const targets = counted(all.flatMap((each) => each.targets))
  return [
    ...insert('delivery', rows),
    ...insert(
      'body',
      all.map(({ row, bytes }) => ({ n: row.n, bytes })),
    ),
    ...insert(
      'forward',
      all.flatMap((each) => newForwards(each.row.n, each.targets, each.row.received_at)),
    ),
    ...[...minutes].map(([minute, count]) => countMinute(minute, count, 0)),
    ...[...targets].map(([target, count]) => countForwards(target, { waiting: count })),
  ]
}

/** How often each is there. */
function counted<Key>(all: readonly Key[]): Map<Key, number> {
  const counts = new Map<Key, number>()
  for (const key of all) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}

/** Without the id of its hook, an equal id may be chance. */
function isOfAnotherHook(known: Known, delivery: Delivery): boolean {
  const { hookId, repo, number } = delivery
  const isSame = known.event === eventOf(delivery) && known.repo === repo && known.number === number
  return isSame && hookId !== '' && known.hook_id !== '' && known.hook_id !== hookId
}

/** A row of `delivery`, without its number, its key and what ignores it. */
export function rowOf(delivery: Delivery) {
  const { provider, repo, number, ref = null, restored } = delivery
  return {
    received_at: delivery.receivedAt,
    source: provider,
    scheme: provider,
    verified: delivery.verifiedBy,
    event: eventOf(delivery),
    repo,
    number,
    ref,
    delivery_id: delivery.deliveryId,
    hook_id: delivery.hookId,
    restored: restored ? JSON.stringify(restored) : null,
    headers: JSON.stringify(delivery.headers),
    size: delivery.body.byteLength,
  }
}

/** Lets the forwards of an entry to these targets wait again, even those that succeeded; false when there is no such entry. */
export function* again(n: number, targets: readonly string[], since: number): Tx<boolean> {
  const found = yield* ask('SELECT n FROM delivery WHERE n = ?', n)
  if (found.length === 0) return false
  yield* waitAgain(n, targets, 'always', since)
  return true
}

/** The statuses in which a forward is made again by each rule; `undefined`: it never was. */
const DUE: Readonly<Record<OnDuplicate, readonly (ForwardStatus | undefined)[]>> = {
  never: [],
  'if-failed': ['failed', undefined],
  always: ['failed', 'succeeded', undefined],
}

/** Gives all targets that then wait for the entry. */
function* waitAgain(
  n: number,
  targets: readonly string[],
  rule: OnDuplicate,
  since: number,
): Tx<readonly string[]> {
  const rows = yield* ask<{ target: string; status: ForwardStatus; tries: number }>(
    'SELECT target, status, tries FROM forward WHERE n = ? ORDER BY position, target',
    n,
  )
  const before = new Map(rows.map(({ target, status }) => [target, status]))
  const due = [...new Set(targets)].filter((target) => DUE[rule].includes(before.get(target)))
  const earlier = due.filter((target) => before.has(target))
  if (due.length > 0)
    yield* askAll([
      ...earlier.map((target) => ({
        sql: `UPDATE forward SET status = 'waiting', tries = 0, since = ?, reason = NULL WHERE n = ? AND target = ?`,
        values: [since, n, target],
      })),
      ...insert(
        'forward',
        newForwards(
          n,
          due.filter((target) => !before.has(target)),
          since,
        ),
      ),
      ...due.map((target) => {
        const status = before.get(target)
        return countForwards(target, { ...(status && { [status]: -1 }), waiting: 1 })
      }),
    ])
  const failures = rows.filter(isFailedAttempt)
  if (failures.length > 0 && failures.every(({ target }) => earlier.includes(target)))
    yield* countFailed(n, -1)
  const waiting = [...before].filter(([, status]) => status === 'waiting').map(([target]) => target)
  return [...new Set([...waiting, ...due])]
}

/** What a target's answer may fill of an entry: the power of two above what one that is down for 24 h makes, probed once a minute. */
const MAX_ATTEMPTS = 4096
/** Attempts that count as one when they follow each other with the same error. */
const ALIKE: ReadonlySet<string> = new Set(['unreachable', 'timed out'])

/**
 * Records an attempt and the forward's new status; nothing when the entry is gone. To record the same attempt again changes nothing more,
 * so that a caller who does not know whether a write succeeded may repeat it.
 */
export function* record(n: number, attempt: Attempt, forward: Forward): Tx<void> {
  const { target, at, outcome, status, ms } = attempt
  const [entry, forwards, last = [], newest = []] = yield* askAll([
    ...forwardsOf(n),
    {
      sql: 'SELECT seq, at, outcome, error FROM attempt WHERE n = ? AND target = ? ORDER BY seq DESC LIMIT 1',
      values: [n, target],
    },
    { sql: 'SELECT coalesce(max(seq), 0) AS seq FROM attempt WHERE n = ?', values: [n] },
  ])
  const ends = finishing(n, target, forward, entry, forwards)
  if (!ends) return
  const [before] = last
  const answer = attempt.answer.subarray(0, MAX_START)
  const error = attempt.error?.slice(0, MAX_ERROR) ?? null
  const isKnown = before?.['at'] === at && before['outcome'] === outcome
  const isAlike = ALIKE.has(outcome) && before?.['outcome'] === outcome && before['error'] === error
  // Beyond that, the last one is replaced.
  const seq = Math.min(Number(newest[0]?.['seq']) + 1, MAX_ATTEMPTS)
  const headers = attempt.headers ? JSON.stringify(attempt.headers) : null
  const row = { n, seq, target, at, outcome, status, ms, answer, headers, error, count: attempt.count }
  const again: Statement = {
    sql: 'UPDATE attempt SET count = count + ?, at = ?, ms = ?, answer = ? WHERE n = ? AND seq = ?',
    values: [attempt.count, at, ms, answer, n, before?.['seq'] ?? null],
  }
  if (seq === MAX_ATTEMPTS && !isKnown && !isAlike)
    yield* execute({ sql: 'DELETE FROM attempt WHERE n = ? AND seq = ?', values: [n, seq] })
  const attempts = isAlike ? [again] : insert('attempt', [row])
  yield* execute(...ends, ...(isKnown ? [] : attempts))
}

/** Sets the status of a forward without an attempt. */
export function* finish(n: number, target: string, forward: Forward): Tx<void> {
  const [entry, forwards] = yield* askAll(forwardsOf(n))
  yield* execute(...(finishing(n, target, forward, entry, forwards) ?? []))
}

/** When an entry came, and its forwards. */
function forwardsOf(n: number): Statement[] {
  return [
    { sql: 'SELECT received_at FROM delivery WHERE n = ?', values: [n] },
    { sql: 'SELECT target, status, tries FROM forward WHERE n = ?', values: [n] },
  ]
}

/** The statements that set the status of a forward, from what {@link forwardsOf} gave; none where it has ended; undefined when it is gone. */
function finishing(
  n: number,
  target: string,
  { status, tries, since, reason }: Forward,
  entry: readonly SqlRow[] = [],
  forwards: readonly SqlRow[] = [],
): Statement[] | undefined {
  const found = forwards.find((row) => row['target'] === target)
  if (!found) return undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this program writes the column
  const before = found['status'] as ForwardStatus
  // Another relay has ended it, while the one whose attempt this was stood still: it is not sent again.
  if (before !== 'waiting' && status !== 'succeeded') return []
  const hasFailed = (row: SqlRow): boolean => row['status'] === 'failed' || Number(row['tries']) > 0
  const others = forwards.some((row) => row['target'] !== target && hasFailed(row))
  const [was, is] = [hasFailed(found), isFailedAttempt({ status, tries })]
  return [
    {
      sql: 'UPDATE forward SET status = ?, tries = ?, since = ?, reason = ? WHERE n = ? AND target = ?',
      values: [status, tries, since, reason ?? null, n, target],
    },
    ...(before === status ? [] : [countForwards(target, { [before]: -1, [status]: 1 })]),
    ...(was === is || others
      ? []
      : [countMinute(minuteOf(Number(entry[0]?.['received_at'])), 0, is ? 1 : -1)]),
  ]
}

/** Forwards that one step fails. */
const EXPIRE_STEP = 200

/** Which waiting forwards have waited too long: of one target, or of all targets but those that have a route. */
export type Expiring = { readonly target: string } | { readonly except: readonly string[] }

/** Fails forwards that wait since before an instant. Gives those of one step; there may be more unless it is none. */
export function* expire(
  before: number,
  which: Expiring,
): Tx<readonly { readonly n: number; readonly target: string }[]> {
  const [condition, values] =
    'target' in which
      ? ['target = ?', [which.target]]
      : [which.except.length === 0 ? '0 = 0' : `target NOT IN (${marks(which.except.length)})`, which.except]
  const rows = yield* ask<{ n: number; target: string; tries: number; since: number }>(
    `SELECT n, target, tries, since FROM forward WHERE status = 'waiting' AND since < ? AND ${condition} LIMIT ${EXPIRE_STEP}`,
    before,
    ...values,
  )
  for (const { n, target, tries, since } of rows)
    yield* finish(n, target, { status: 'failed', tries, since, reason: 'older than 24 h' })
  return rows
}

/** A forward that waits keeps its entry, and the newest entry stays because the next gets its number from it. */
const REMOVABLE = `n < (SELECT max(n) FROM delivery)
  AND NOT EXISTS (SELECT 1 FROM forward WHERE forward.n = delivery.n AND forward.status = 'waiting')`

/** Entries looked at, and at most removed, in one step: some milliseconds, which a delivery may have to wait for. */
const SWEEP_STEP = 500

/** The last of the entries that a step goes through: enough to remove so many bytes, or all that it looks at. */
const LAST_OF_STEP = `SELECT max(n) AS last FROM (
  SELECT n, sum(bytes) OVER (ORDER BY n) - bytes AS before FROM (
    SELECT n, CASE WHEN ${REMOVABLE} THEN size ELSE 0 END AS bytes FROM delivery
    WHERE n > ? AND n < ? ORDER BY n LIMIT ${SWEEP_STEP}
  ) AS candidate
) AS step WHERE before < ?`

/** Removes the oldest entries with numbers above `after` and below `end`, up to `bytes`. Gives the last that it looked at, 0 for none, and how many it removed. */
export function* remove(
  after: number,
  end: number,
  bytes: number,
): Tx<{ readonly last: number; readonly removed: number }> {
  const limit = Math.min(bytes, Number.MAX_SAFE_INTEGER)
  const [step] = yield* ask<{ last: number | null }>(LAST_OF_STEP, after, end, limit)
  const last = step?.last ?? 0
  if (last === 0) return { last, removed: 0 }
  const which = `n > ? AND n <= ? AND ${REMOVABLE}`
  const counts = yield* ask<{ target: string; status: ForwardStatus; count: number }>(
    `SELECT target, status, count(*) AS count FROM forward
      WHERE n IN (SELECT n FROM delivery WHERE ${which}) GROUP BY target, status`,
    after,
    last,
  )
  for (const { target, status, count } of counts) yield* execute(countForwards(target, { [status]: -count }))
  const minutes = yield* ask<Minute & { readonly until: number }>(
    `SELECT received_at / 60000 AS minute, count(*) AS received, max(received_at) AS until,
      sum(CASE WHEN EXISTS (SELECT 1 FROM forward WHERE forward.n = delivery.n AND ${FAILED_ATTEMPT}) THEN 1 ELSE 0 END) AS failed
      FROM delivery WHERE ${which} GROUP BY received_at / 60000`,
    after,
    last,
  )
  yield* execute(...minutes.map((each) => countMinute(each.minute, -each.received, -each.failed)))
  const until = Math.max(0, ...minutes.map((each) => each.until))
  yield* ask('UPDATE removed SET until = ? WHERE until < ?', until, until)
  const rows = yield* ask(`DELETE FROM delivery WHERE ${which} RETURNING n`, after, last)
  yield* ask('DELETE FROM minute WHERE received = 0')
  yield* ask('DELETE FROM target WHERE waiting = 0 AND succeeded = 0 AND failed = 0')
  return { last, removed: rows.length }
}

export function* addDuplicates(counts: ReadonlyMap<number, number>): Tx<void> {
  const sql = 'UPDATE delivery SET duplicates = duplicates + ? WHERE n = ?'
  yield* execute(...[...counts].map(([n, more]) => ({ sql, values: [more, n] })))
}

/** A row that nothing ever sees. It is written and flushed all the same, so that an ill disk fails, or a server that only reads. */
export function* check(): Tx<void> {
  yield* ask(`INSERT INTO kv (key, value) VALUES ('check', '')`)
  yield* ask(`DELETE FROM kv WHERE key = 'check'`)
}

type Row = Readonly<Record<string, SqlValue>>

/** Rows in one statement; PostgreSQL takes 65,535 values. */
const MAX_ROWS = 32

/** Inserts rows of the same columns. As many in each statement as a power of two: few texts, so that connections keep them prepared. */
function insert(table: string, rows: readonly Row[]): Statement[] {
  const statements: Statement[] = []
  const columns = Object.keys(rows[0] ?? {})
  for (let from = 0, count = 0; from < rows.length; from += count) {
    count = Math.min(MAX_ROWS, 2 ** Math.floor(Math.log2(rows.length - from)))
    const values = Array.from({ length: count }, () => `(${marks(columns.length)})`).join(', ')
    statements.push({
      sql: `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${values}`,
      values: rows.slice(from, from + count).flatMap((row) => Object.values(row)),
    })
  }
  return statements
}

/** One row for each target. */
function newForwards(n: number, targets: readonly string[], since: number): Row[] {
  return targets.map((target, position) => ({ n, target, position, status: 'waiting', tries: 0, since }))
}

/** Changes how many forwards to a target have each status. */
function countForwards(target: string, changes: Partial<Readonly<Record<ForwardStatus, number>>>): Statement {
  const { waiting = 0, succeeded = 0, failed = 0 } = changes
  return {
    sql: `INSERT INTO target (target, waiting, succeeded, failed) VALUES (?, ?, ?, ?)
      ON CONFLICT (target) DO UPDATE SET waiting = target.waiting + excluded.waiting,
        succeeded = target.succeeded + excluded.succeeded, failed = target.failed + excluded.failed`,
    values: [target, waiting, succeeded, failed],
  }
}

function minuteOf(at: number): number {
  return Math.floor(at / 60_000)
}

/** `minute`: its number since 1970. */
function countMinute(minute: number, received: number, failed: number): Statement {
  return {
    sql: `INSERT INTO minute (minute, received, failed) VALUES (?, ?, ?)
      ON CONFLICT (minute) DO UPDATE SET received = minute.received + excluded.received, failed = minute.failed + excluded.failed`,
    values: [minute, received, failed],
  }
}

/** Counts an entry in its minute as failed, or no longer. */
function* countFailed(n: number, change: 1 | -1): Tx<void> {
  const [row] = yield* ask<{ at: number }>('SELECT received_at AS at FROM delivery WHERE n = ?', n)
  if (row) yield* execute(countMinute(minuteOf(row.at), 0, change))
}
