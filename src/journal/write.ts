import { MAX_START } from '../base/bytes.js'
import { isCodeHost } from '../base/settings.js'
import { ask, marks, execute, type SqlValue, type Statement, type Tx } from '../store/sql.js'
import {
  type Attempt,
  type Delivery,
  type Forward,
  type ForwardStatus,
  MAX_ERROR,
  type OnDuplicate,
  type Plan,
  type Receipt,
} from './types.js'

/**
 * The key under which a delivery is known: source and delivery id. GitHub gives one event the same id for every hook that gets it, so that
 * the second hook of a repository brings a duplicate. Ids, not digests: GitHub's begin with the time, so a burst writes one page.
 *
 * One that came through a tunnel is known by what was signed: the ids are not signed, and anyone with the tunnel's address could send a body
 * again under others, or spoil an id before the delivery comes that has it. Where the payload does not prove the event of a code host, the
 * event takes part, so that a copy under another does not take the place of the genuine one; other senders name it only in a header, which
 * anybody could write again and again, so that their bytes count once. Where the sender can send the same bytes again for something new, the
 * id does.
 */
function keyOf(delivery: Delivery): string {
  const { provider, scheme = provider, deliveryId, restored } = delivery
  if (!restored) return `${provider} ${deliveryId}`
  const { sha256, unproved, repeatable } = restored
  const bytes = isCodeHost(provider) ? `body:${sha256}` : `body:${provider}:${sha256}`
  if (unproved && isCodeHost(scheme)) return `${bytes} ${eventOf(delivery)}`
  return repeatable ? `${bytes} ${deliveryId}` : bytes
}

/** The event as it is stored: with its action, which only a code host has. An event may have dots, and never a line feed. */
export function eventOf({ event, action }: Pick<Delivery, 'event' | 'action'>): string {
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
}

const KNOWN =
  'SELECT n, key, source, delivery_id, event, repo, number, hook_id, ignored_by FROM delivery WHERE'

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
  const bodies = all.map(({ row, bytes }) => ({ n: row.n, bytes }))
  const forwards = all.flatMap(({ row, targets }) => newForwards(row.n, targets, row.received_at))
  const waiting = counted(all.flatMap(({ targets }) => targets))
  return [
    ...insert('delivery', rows),
    ...insert('body', bodies),
    ...insert('forward', forwards),
    ...[...waiting].map(([target, count]) => countForwards(target, { waiting: count })),
  ]
}

/** How often each is there. */
function counted<Key>(all: readonly Key[]): ReadonlyMap<Key, number> {
  const counts = new Map<Key, number>()
  for (const key of all) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}

/** Without the id of its hook, an equal id may be chance. Two sources take one event each, for routes of their own. */
function isOfAnotherHook(known: Known, delivery: Delivery): boolean {
  const { provider, hookId, repo, number } = delivery
  const isSame = known.event === eventOf(delivery) && known.repo === repo && known.number === number
  return (
    isSame && known.source === provider && hookId !== '' && known.hook_id !== '' && known.hook_id !== hookId
  )
}

/** A row of `delivery`, without its number, its key and what ignores it. */
export function rowOf(delivery: Delivery) {
  const { provider, repo, number, ref = null, restored } = delivery
  return {
    received_at: delivery.receivedAt,
    source: provider,
    scheme: delivery.scheme ?? provider,
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
  const rows = yield* ask<{ target: string; status: ForwardStatus }>(
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
  const [found] = yield* ask<Recorded>(RECORDED, n, target)
  if (!found) return
  const answer = attempt.answer.subarray(0, MAX_START)
  const error = attempt.error?.slice(0, MAX_ERROR) ?? null
  const headers = attempt.headers ? JSON.stringify(attempt.headers) : null
  // Beyond that, the last one is replaced.
  const seq = Math.min(found.newest + 1, MAX_ATTEMPTS)
  const isSame = found.outcome === outcome
  yield* finish(n, target, forward, found.before)
  if (isSame && found.at === at) return
  if (isSame && found.error === error && ALIKE.has(outcome))
    yield* execute({
      sql: 'UPDATE attempt SET count = count + ?, at = ?, ms = ?, answer = ? WHERE n = ? AND seq = ?',
      values: [attempt.count, at, ms, answer, n, found.seq],
    })
  else {
    if (seq === found.newest) yield* ask('DELETE FROM attempt WHERE n = ? AND seq = ?', n, seq)
    const row = { n, seq, target, at, outcome, status, ms, answer, headers, error, count: attempt.count }
    yield* execute(...insert('attempt', [row]))
  }
}

/** The status of a forward, the last attempt at its target, and the number of its entry's last attempt. */
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

/** Sets the status of a forward that had the status `before`; nothing where it has ended. */
export function* finish(n: number, target: string, forward: Forward, before: ForwardStatus): Tx<void> {
  // Another relay has ended it, while the one whose attempt this was stood still: it is not sent again.
  if (before !== 'waiting' && forward.status !== 'succeeded') return
  const change = { [before]: -1, [forward.status]: 1 }
  yield* execute(
    setForward(n, target, forward),
    ...(before === forward.status ? [] : [countForwards(target, change)]),
  )
}

function setForward(n: number, target: string, { status, tries, since, reason }: Forward): Statement {
  return {
    sql: 'UPDATE forward SET status = ?, tries = ?, since = ?, reason = ? WHERE n = ? AND target = ?',
    values: [status, tries, since, reason ?? null, n, target],
  }
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
  for (const { n, target, tries, since } of rows) {
    const forward: Forward = { status: 'failed', tries, since, reason: 'older than 24 h' }
    yield* finish(n, target, forward, 'waiting')
  }
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
  const rows = yield* ask<{ received_at: number }>(
    `DELETE FROM delivery WHERE ${which} RETURNING received_at`,
    after,
    last,
  )
  if (rows.length > 0) {
    const until = Math.max(...rows.map((row) => row.received_at))
    yield* ask(
      'UPDATE removed SET entries = entries + ?, until = CASE WHEN until < ? THEN ? ELSE until END',
      rows.length,
      until,
      until,
    )
  }
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
