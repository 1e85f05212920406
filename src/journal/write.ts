import { shownSource } from '../base/source-names.js'
import { MAX_PREFIX } from '../base/bytes.js'
import { WAITS_AGAIN, WAITS_FIRST } from '../store/schema.js'
import { fetchRows, placeholders, execute, type SqlValue, type Statement, type Tx } from '../store/sql.js'
import {
  type Attempt,
  type Delivery,
  type NamedEvent,
  type Forward,
  type ForwardStatus,
  MAX_ERROR,
  type OnDuplicate,
  type Plan,
  type Receipt,
  STORED_BYTES,
} from './types.js'

/**
 * Key that identifies a delivery: source and delivery id. GitHub gives an event the same id for every hook, so the
 * second hook of a repository sends a duplicate. Ids are used instead of digests because GitHub's begin with the time,
 * so a burst writes one page.
 * A delivery from a tunnel is identified by its signed bytes: ids are not signed, and anyone with the tunnel's address
 * could send a body again under another id, or use up the id of a future delivery. If the payload does not prove the
 * event of a code host, the event is part of the key, so that a copy under another event does not replace the genuine
 * one. Other senders name the event only in a header, which anybody could vary, so their bytes count once. If the
 * sender can send the same bytes for something new, the id is part of the key.
 */
function keyOf(delivery: Delivery): string {
  const { provider, deliveryId, restored } = delivery
  if (!restored) return `${provider} ${deliveryId}`
  const { sha256, named, repeatable } = restored
  const source = shownSource(provider)
  const bytes = source === undefined ? `body:${sha256}` : `body:${source}:${sha256}`
  if (named) return `${bytes} ${eventOf(delivery)}`
  return repeatable ? `${bytes} ${deliveryId}` : bytes
}

/**
 * Event as it is stored, with the action, which only code hosts have. An event may have dots, but never a line feed.
 */
export function eventOf({ event, action }: NamedEvent): string {
  return action === null ? event : `${event}\n${action}`
}

type Known = {
  readonly n: number
  readonly key: string
  readonly source: string
  readonly delivery_id: string
  readonly event: string
  readonly repo: string | null
  readonly number: number | null
  readonly hook_id: string
  readonly ignored_by: string | null
  readonly received_at: number
}

const KNOWN =
  'SELECT n, key, source, delivery_id, event, repo, number, hook_id, ignored_by, received_at FROM delivery WHERE'

/** A delivery to record, with its forwarding. */
export interface Appended {
  readonly delivery: Delivery
  readonly plan: Plan
}

/** An entry to insert. */
interface New {
  readonly row: Known & ReturnType<typeof deliveryColumns>
  readonly bytes: Uint8Array
  readonly targets: readonly string[]
  readonly since: number
}

/**
 * Records deliveries and their forwards, in order. A duplicate changes nothing unless it is forwarded again, so that it
 * costs no flush. One that came through another hook (or the App) is never forwarded again, whatever the rule, because
 * one event must run once.
 */
export function* append(all: readonly Appended[]): Tx<readonly Receipt[]> {
  const keys = padded(all.map(({ delivery }) => keyOf(delivery)))
  const ids = padded(all.map(({ delivery }) => delivery.deliveryId))
  // From a tunnel the key is a digest, and two hooks may send different bytes, so ids are compared too. The newest
  // entry is read for its number.
  const found = yield* fetchRows<Known>(
    `${KNOWN} key IN (${placeholders(keys.length)})
      UNION ALL ${KNOWN} delivery_id IN (${placeholders(ids.length)}) AND hook_id <> ''
      UNION ALL ${KNOWN} n = (SELECT max(n) FROM delivery)`,
    ...keys,
    ...ids,
  )
  const entries = [...found]
  let n = Math.max(0, ...found.map((each) => each.n))
  const added: New[] = []
  const retired: Statement[] = []
  const requeue: { readonly at: number; readonly work: Tx<Receipt> }[] = []
  const receipts = all.map(({ delivery, plan }, at): Receipt => {
    const key = keyOf(delivery)
    const isAlike = (each: Known): boolean => each.key === key || each.delivery_id === delivery.deliveryId
    const other = entries.find((each) => isAlike(each) && isOfAnotherHook(each, delivery))
    if (other) return { n: other.n, duplicate: true, targets: [] }
    const known = entries.findLast((each) => each.key === key)
    const isOver =
      known !== undefined && delivery.receivedAt - known.received_at > (plan.sameWithin ?? Infinity)
    if (isOver) retired.push(retire(known))
    if (known && !isOver) {
      requeue.push({ at, work: appendAgain(known, delivery, plan) })
      return { n: known.n, duplicate: true, targets: [] }
    }
    const row = { n: ++n, key, ...deliveryColumns(delivery), ignored_by: plan.ignoredBy ?? null }
    const targets = [...new Set(plan.targets)]
    entries.push(row)
    added.push({ row, bytes: delivery.body, targets, since: sinceOf(delivery, plan) })
    return { n, duplicate: false, targets, ...ignoredBy(row) }
  })
  yield* execute(...retired, ...insertNew(added))
  for (const { at, work } of requeue) receipts[at] = yield* work
  return receipts
}

/** Gives up the key of an entry, so that a later delivery can have it. */
function retire({ n, key }: Known): Statement {
  return { sql: 'UPDATE delivery SET key = ? WHERE n = ?', values: [`${key} until ${n}`, n] }
}

function ignoredBy({ ignored_by: text }: Known): Pick<Receipt, 'ignoredBy'> {
  return text === null ? {} : { ignoredBy: text }
}

/**
 * Pads values to a power of two by repeating the first one. Statements then have few different texts, which connections
 * keep prepared.
 */
function padded(values: readonly string[]): string[] {
  const count = 2 ** Math.ceil(Math.log2(values.length))
  return Array.from({ length: count }, (_, i) => values[i] ?? values[0] ?? '')
}

/**
 * Adds targets that are new or failed, according to the rule. A delivery with another event, which is not signed, adds
 * none.
 */
function* appendAgain(found: Known, delivery: Delivery, plan: Plan): Tx<Receipt> {
  const isSameEvent = found.event === eventOf(delivery) && plan.ignoredBy === undefined
  const wanted = isSameEvent ? plan.targets : []
  const targets = yield* waitAgain(found.n, wanted, plan.onDuplicate, sinceOf(delivery, plan))
  return { n: found.n, duplicate: true, targets, ...ignoredBy(found) }
}

/** Start of a delivery's wait for its targets. */
function sinceOf({ receivedAt }: Delivery, { since = receivedAt }: Plan): number {
  return since
}

/** Inserts rows together: on PostgreSQL, a statement for each would cost a round trip. */
function insertNew(all: readonly New[]): Statement[] {
  const rows = all.map(({ row }) => row)
  const bodies = all.map(({ row, bytes }) => ({ n: row.n, bytes }))
  const forwards = all.flatMap(({ row, targets, since }) => newForwards(row.n, targets, since))
  const waiting = counted(all.flatMap(({ targets }) => targets))
  return [
    ...insert('delivery', rows),
    ...insert('body', bodies),
    ...insert('forward', forwards),
    ...[...waiting].map(([target, count]) => countForwards(target, { waiting: count })),
  ]
}

/** Counts equal keys. */
function counted<Key>(all: readonly Key[]): ReadonlyMap<Key, number> {
  const counts = new Map<Key, number>()
  for (const key of all) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}

/**
 * True for the same event from another hook. Without a hook id, equal delivery ids may be a coincidence. Two sources
 * store an event each, for their own routes.
 */
function isOfAnotherHook(known: Known, delivery: Delivery): boolean {
  const { provider, hookId, repo, number } = delivery
  const isSame = known.event === eventOf(delivery) && known.repo === repo && known.number === number
  return (
    isSame && known.source === provider && hookId !== '' && known.hook_id !== '' && known.hook_id !== hookId
  )
}

/** Columns of `delivery`, except its number, its key and its ignore rule. */
export function deliveryColumns(delivery: Delivery) {
  const { provider, repo, number, kind = null, ref = null, query = null, restored } = delivery
  return {
    received_at: delivery.receivedAt,
    source: provider,
    scheme: delivery.scheme ?? provider,
    verified: delivery.verifiedBy,
    event: eventOf(delivery),
    repo,
    number,
    kind,
    ref,
    delivery_id: delivery.deliveryId,
    hook_id: delivery.hookId,
    restored: restored ? JSON.stringify(restored) : null,
    headers: JSON.stringify(delivery.headers),
    query,
    size: delivery.body.byteLength,
  }
}

/**
 * Queues the forwards of an entry to these targets again, as new ones, also those that wait. Undefined if there is no
 * such entry, otherwise the targets that then wait for it.
 */
export function* again(
  n: number,
  targets: readonly string[],
  rule: OnDuplicate,
  since: number,
): Tx<readonly string[] | undefined> {
  const found = yield* fetchRows('SELECT n FROM delivery WHERE n = ?', n)
  if (found.length === 0) return undefined
  const waiting = yield* fetchRows<{ target: string }>(
    `SELECT target FROM forward WHERE n = ? AND status = 'waiting'`,
    n,
  )
  const renewed = waiting.filter(({ target }) => targets.includes(target))
  const forward: Forward = { status: 'waiting', tries: 0, since }
  yield* execute(...renewed.map(({ target }) => setForward(n, target, forward)))
  const all = yield* waitAgain(n, targets, rule, since)
  return all.filter((target) => targets.includes(target))
}

/** An entry that a target has taken, by its number and its delivery id. */
export interface Acknowledged {
  readonly n: number
  readonly id: string
}

/**
 * Marks everything that waits for a target up to an entry as forwarded, without attempts: the target itself has said
 * what it took. Returns the bytes of each, as `storedBytes` counts them. Nothing if the entry is not that of the id, since the data may be an older copy
 * whose numbers are given again.
 */
export function* acknowledge(
  target: string,
  { n, id }: Acknowledged,
): Tx<readonly { readonly bytes: number }[]> {
  const same = yield* fetchRows('SELECT n FROM delivery WHERE n = ? AND delivery_id = ?', n, id)
  if (same.length === 0) return []
  const rows = yield* fetchRows<{ bytes: number }>(
    `UPDATE forward SET status = 'succeeded' WHERE target = ? AND ${WAITS_FIRST} AND n <= ?
      RETURNING (SELECT ${STORED_BYTES} FROM delivery WHERE delivery.n = forward.n) AS bytes`,
    target,
    n,
  )
  if (rows.length > 0)
    yield* execute(countForwards(target, { waiting: -rows.length, succeeded: rows.length }))
  return rows
}

/** Reason of a forward that a person ended. */
const SKIPPED = 'skipped'

/** Ends the forwards of an entry that wait, as failures. Returns their targets. */
export function* endWaiting(n: number): Tx<readonly string[]> {
  const rows = yield* fetchRows<{ target: string; tries: number; since: number }>(
    `SELECT target, tries, since FROM forward WHERE n = ? AND status = 'waiting' ORDER BY position, target`,
    n,
  )
  for (const { target, tries, since } of rows)
    yield* finish(n, target, { status: 'failed', tries, since, reason: SKIPPED }, 'waiting')
  return rows.map(({ target }) => target)
}

/** Statuses of forwards that are made again under each rule. `undefined` is a new forward. */
const DUE: Readonly<Record<OnDuplicate, readonly (ForwardStatus | undefined)[]>> = {
  never: [],
  'if-failed': ['failed', undefined],
  always: ['failed', 'succeeded', undefined],
}

/** Queues forwards again, and returns all targets that then wait for the entry. */
function* waitAgain(
  n: number,
  targets: readonly string[],
  rule: OnDuplicate,
  since: number,
): Tx<readonly string[]> {
  const rows = yield* fetchRows<{ target: string; status: ForwardStatus }>(
    'SELECT target, status FROM forward WHERE n = ? ORDER BY position, target',
    n,
  )
  const before = new Map(rows.map(({ target, status }) => [target, status]))
  const due = [...new Set(targets)].filter((target) => DUE[rule].includes(before.get(target)))
  const missing = due.filter((target) => !before.has(target))
  yield* execute(
    ...due.flatMap((target) => {
      const status = before.get(target)
      if (!status) return [countForwards(target, { waiting: 1 })]
      const forward: Forward = { status: 'waiting', tries: 0, since }
      return [setForward(n, target, forward), countForwards(target, { [status]: -1, waiting: 1 })]
    }),
    ...insert('forward', newForwards(n, missing, since)),
  )
  const waiting = [...before].filter(([, status]) => status === 'waiting').map(([target]) => target)
  return [...new Set([...waiting, ...due])]
}

/**
 * Most attempts of an entry: the power of two above the number for a target that is down for 24 h, probed once a
 * minute.
 */
const MAX_ATTEMPTS = 4096
/** Outcomes that count as one attempt if they follow each other with the same error. */
const ALIKE: ReadonlySet<string> = new Set(['unreachable', 'timed out'])

/**
 * Records an attempt and the forward's new status, or nothing if the entry is gone. Recording the same attempt again
 * changes nothing, so a caller that does not know whether a write succeeded may repeat it.
 */
export function* record(n: number, attempt: Attempt, forward: Forward): Tx<ForwardStatus> {
  const { target, at, outcome, status, ms } = attempt
  const [found] = yield* fetchRows<Recorded>(RECORDED, n, target)
  if (!found) return forward.status
  const after = found.before === 'waiting' ? forward.status : found.before
  const answer = attempt.answer.subarray(0, MAX_PREFIX)
  const error = attempt.error?.slice(0, MAX_ERROR) ?? null
  const headers = attempt.headers ? JSON.stringify(attempt.headers) : null
  // Beyond the limit, the last attempt is replaced.
  const seq = Math.min(found.newest + 1, MAX_ATTEMPTS)
  const isSame = found.outcome === outcome
  yield* finish(n, target, forward, found.before)
  if (isSame && found.at === at) return after
  if (isSame && found.error === error && ALIKE.has(outcome))
    yield* execute({
      sql: 'UPDATE attempt SET count = count + ?, at = ?, ms = ?, answer = ? WHERE n = ? AND seq = ?',
      values: [attempt.count, at, ms, answer, n, found.seq],
    })
  else {
    if (seq === found.newest) yield* fetchRows('DELETE FROM attempt WHERE n = ? AND seq = ?', n, seq)
    const row = { n, seq, target, at, outcome, status, ms, answer, headers, error, count: attempt.count }
    yield* execute(...insert('attempt', [row]))
  }
  return after
}

/** Status of a forward, the last attempt at its target, and the number of its entry's last attempt. */
const RECORDED = `SELECT forward.status AS before, last.seq, last.at, last.outcome, last.error,
    (SELECT coalesce(max(seq), 0) FROM attempt WHERE attempt.n = forward.n) AS newest
  FROM forward LEFT JOIN attempt AS last ON last.n = forward.n AND last.seq = (
    SELECT max(seq) FROM attempt WHERE attempt.n = forward.n AND attempt.target = forward.target)
  WHERE forward.n = ? AND forward.target = ?`

type Recorded = {
  readonly before: ForwardStatus
  readonly newest: number
  readonly seq: number | null
  readonly at: number | null
  readonly outcome: string | null
  readonly error: string | null
}

/** Changes the status of a forward from `before`, unless it has already ended. */
export function* finish(n: number, target: string, forward: Forward, before: ForwardStatus): Tx<void> {
  // Another relay has ended the forward while the one that made this attempt was suspended. It is not sent again.
  if (before !== 'waiting' && forward.status !== 'succeeded') return
  const change = { [before]: -1, [forward.status]: 1 }
  yield* execute(
    setForward(n, target, forward),
    ...(before === forward.status ? [] : [countForwards(target, change)]),
  )
}

function setForward(n: number, target: string, { status, tries, since, due, reason }: Forward): Statement {
  return {
    sql: 'UPDATE forward SET status = ?, tries = ?, since = ?, due = ?, reason = ? WHERE n = ? AND target = ?',
    values: [status, tries, since, due ?? 0, reason ?? null, n, target],
  }
}

/** Makes all forwards to these targets that are to be tried again due now. */
export function* hasten(targets: readonly string[]): Tx<void> {
  const sql = `UPDATE forward SET due = 1 WHERE target = ? AND ${WAITS_AGAIN}`
  yield* execute(...targets.map((target) => ({ sql, values: [target] })))
}

/** Most forwards that one step fails. */
const EXPIRE_STEP = 200

/** Selects forwards of one target, or of all targets except those with a route. */
export type Expiring = { readonly target: string } | { readonly except: readonly string[] }

/**
 * Fails forwards that have waited since before an instant. Returns those of one step; there may be more unless it is
 * empty.
 */
export function* expire(
  before: number,
  which: Expiring,
): Tx<readonly { readonly n: number; readonly target: string }[]> {
  const [others, values] =
    'target' in which
      ? ['target = ?', [which.target]]
      : which.except.length === 0
        ? ['0 = 0', []]
        : [`target NOT IN (${placeholders(which.except.length)})`, which.except]
  const some = (waits: string): string =>
    `SELECT * FROM (SELECT n, target, tries, since FROM forward WHERE ${waits} AND since < ?
      AND target IN (SELECT target FROM target WHERE waiting > 0 AND ${others}) LIMIT ${EXPIRE_STEP}) AS part`
  const each = [before, ...values]
  const rows = yield* fetchRows<{ n: number; target: string; tries: number; since: number }>(
    `${some(WAITS_FIRST)} UNION ALL ${some(WAITS_AGAIN)}`,
    ...each,
    ...each,
  )
  for (const { n, target, tries, since } of rows) {
    const forward: Forward = { status: 'failed', tries, since, reason: 'older than 24 h' }
    yield* finish(n, target, forward, 'waiting')
  }
  return rows
}

/**
 * Condition for removable entries. A waiting forward keeps its entry, and the newest entry stays because the next
 * number is derived from it.
 */
const REMOVABLE = `n < (SELECT max(n) FROM delivery)
  AND NOT EXISTS (SELECT 1 FROM forward WHERE forward.n = delivery.n AND forward.status = 'waiting')`

/** Most entries examined and removed in one step: some milliseconds, for which a delivery may have to wait. */
const SWEEP_STEP = 500

/** Query for the last entry of a step: enough to remove so many bytes, or the limit of a step. */
const LAST_OF_STEP = `SELECT max(n) AS last FROM (
  SELECT n, sum(bytes) OVER (ORDER BY n) - bytes AS before FROM (
    SELECT n, CASE WHEN ${REMOVABLE} THEN size ELSE 0 END AS bytes FROM delivery
    WHERE n > ? AND n < ? ORDER BY n LIMIT ${SWEEP_STEP}
  ) AS candidate
) AS step WHERE before < ?`

/**
 * Removes the oldest entries with numbers above `after` and below `end`, up to `bytes`. Returns the last entry
 * examined, 0 for none, and the number removed.
 */
export function* remove(
  after: number,
  end: number,
  bytes: number,
): Tx<{ readonly last: number; readonly removed: number }> {
  const limit = Math.min(bytes, Number.MAX_SAFE_INTEGER)
  const [step] = yield* fetchRows<{ last: number | null }>(LAST_OF_STEP, after, end, limit)
  const last = step?.last ?? 0
  if (last === 0) return { last, removed: 0 }
  return { last, removed: yield* removeWhich(`n > ? AND n <= ? AND ${REMOVABLE}`, [after, last]) }
}

/**
 * Removes entries of a source, those that wait, too. Returns the number removed, 0 at the end. The newest entry of all
 * stays, since the next number is derived from it, but is emptied.
 */
export function* removeOf(source: string): Tx<number> {
  const some = `SELECT n FROM delivery WHERE source = ? AND n < (SELECT max(n) FROM delivery) ORDER BY n LIMIT ${SWEEP_STEP}`
  const removed = yield* removeWhich(`n IN (${some})`, [source])
  if (removed > 0) return removed
  const [newest] = yield* fetchRows<{ n: number }>(
    'SELECT n FROM delivery WHERE source = ? AND n = (SELECT max(n) FROM delivery)',
    source,
  )
  if (!newest) return 0
  yield* endWaiting(newest.n)
  yield* empty(newest.n)
  return 0
}

/** Empties the newest entry if it was received before an instant, and waits for nothing. */
export function* emptyNewest(before: number): Tx<void> {
  const [newest] = yield* fetchRows<{ n: number }>(
    `SELECT n FROM delivery WHERE n = (SELECT max(n) FROM delivery) AND received_at < ? AND headers <> '[]'
      AND NOT EXISTS (SELECT 1 FROM forward WHERE forward.n = delivery.n AND forward.status = 'waiting')`,
    before,
  )
  if (newest) yield* empty(newest.n)
}

/** Removes what an entry has of its request. */
function* empty(n: number): Tx<void> {
  yield* execute(
    { sql: `UPDATE delivery SET headers = '[]', query = NULL, size = 0 WHERE n = ?`, values: [n] },
    { sql: 'UPDATE body SET bytes = ? WHERE n = ?', values: [new Uint8Array(), n] },
  )
}

/** Removes entries, and their forwards from the counts. Returns the number removed. */
function* removeWhich(which: string, values: readonly SqlValue[]): Tx<number> {
  const counts = yield* fetchRows<{ target: string; status: ForwardStatus; count: number }>(
    `SELECT target, status, count(*) AS count FROM forward
      WHERE n IN (SELECT n FROM delivery WHERE ${which}) GROUP BY target, status`,
    ...values,
  )
  for (const { target, status, count } of counts) yield* execute(countForwards(target, { [status]: -count }))
  const rows = yield* fetchRows<{ received_at: number }>(
    `DELETE FROM delivery WHERE ${which} RETURNING received_at`,
    ...values,
  )
  if (rows.length > 0) {
    const until = Math.max(...rows.map((row) => row.received_at))
    yield* fetchRows(
      'UPDATE removed SET entries = entries + ?, until = CASE WHEN until < ? THEN ? ELSE until END',
      rows.length,
      until,
      until,
    )
  }
  yield* fetchRows('DELETE FROM target WHERE waiting = 0 AND succeeded = 0 AND failed = 0')
  return rows.length
}

export function* addDuplicates(counts: ReadonlyMap<number, number>): Tx<void> {
  const sql = 'UPDATE delivery SET duplicates = duplicates + ? WHERE n = ?'
  yield* execute(...[...counts].map(([n, more]) => ({ sql, values: [more, n] })))
}

/** Writes and flushes a row that no query reads, to detect a failing disk or a read-only server. */
export function* check(): Tx<void> {
  yield* fetchRows(`INSERT INTO kv (key, value) VALUES ('check', '')`)
  yield* fetchRows(`DELETE FROM kv WHERE key = 'check'`)
}

type Row = Readonly<Record<string, SqlValue>>

/** Most rows in one statement. PostgreSQL allows 65,535 values. */
const MAX_ROWS = 32

/**
 * Inserts rows with the same columns. Each statement has a power of two of rows, so that there are few texts, which
 * connections keep prepared.
 */
function insert(table: string, rows: readonly Row[]): Statement[] {
  const statements: Statement[] = []
  const columns = Object.keys(rows[0] ?? {})
  for (let from = 0, count = 0; from < rows.length; from += count) {
    count = Math.min(MAX_ROWS, 2 ** Math.floor(Math.log2(rows.length - from)))
    const values = Array.from({ length: count }, () => `(${placeholders(columns.length)})`).join(', ')
    statements.push({
      sql: `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${values}`,
      values: rows.slice(from, from + count).flatMap((row) => Object.values(row)),
    })
  }
  return statements
}

/** Rows of new forwards, one for each target. */
function newForwards(n: number, targets: readonly string[], since: number): Row[] {
  return targets.map((target, position) => ({ n, target, position, status: 'waiting', tries: 0, since }))
}

/** Changes the number of forwards to a target by status. */
function countForwards(target: string, changes: Partial<Readonly<Record<ForwardStatus, number>>>): Statement {
  const { waiting = 0, succeeded = 0, failed = 0 } = changes
  return {
    sql: `INSERT INTO target (target, waiting, succeeded, failed) VALUES (?, ?, ?, ?)
      ON CONFLICT (target) DO UPDATE SET waiting = target.waiting + excluded.waiting,
        succeeded = target.succeeded + excluded.succeeded, failed = target.failed + excluded.failed`,
    values: [target, waiting, succeeded, failed],
  }
}
