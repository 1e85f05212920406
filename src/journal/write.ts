import { MAX_START } from '../base/start-of.js'
import { ask, askAll, marks, type SqlValue, type Statement, type Tx } from '../store/sql.js'
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

/** The event as it is stored: with its action, which only a code host has. */
export function eventOf({ event, action }: Pick<Delivery, 'event' | 'action'>): string {
  return action === null ? event : `${event}.${action}`
}

interface Known {
  readonly n: number
  readonly event: string
  readonly repo: string | null
  readonly number: number | null
  readonly hook_id: string
  readonly ignored_by: string | null
}

const KNOWN = 'SELECT n, event, repo, number, hook_id, ignored_by FROM delivery WHERE'

/**
 * Records a delivery and its forwards. What is there already is a duplicate: it changes nothing unless it is forwarded again, so that it
 * costs no flush. One that another hook (or the App) brought is never forwarded again, whatever the rule: one event runs once.
 */
export function* append(delivery: Delivery, plan: Plan): Tx<Receipt> {
  const { deliveryId, hookId, receivedAt } = delivery
  const key = keyOf(delivery)
  const [byKey = [], byId = [], newest = []] = yield* askAll([
    { sql: `${KNOWN} key = ?`, values: [key] },
    // Through a tunnel the key is a digest, and two hooks may send different bytes.
    { sql: `${KNOWN} delivery_id = ? AND hook_id <> '' ORDER BY n LIMIT 8`, values: [deliveryId] },
    { sql: 'SELECT coalesce(max(n), 0) AS n FROM delivery', values: [] },
  ])
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the columns of KNOWN
  const [same, others] = [byKey as unknown as Known[], byId as unknown as Known[]]
  const other = [...same, ...others].find((known) => isOfAnotherHook(known, delivery))
  if (other) return { n: other.n, duplicate: true, targets: [] }
  const [found] = same
  if (found) {
    const isSameEvent = found.event === eventOf(delivery) && plan.ignoredBy === undefined
    const targets = yield* waitAgain(found.n, isSameEvent ? plan.targets : [], plan.onDuplicate, receivedAt)
    const { ignored_by: ignoredBy } = found
    return { n: found.n, duplicate: true, targets, ...(ignoredBy !== null && { ignoredBy }) }
  }
  const n = Number(newest[0]?.['n']) + 1
  const row = { ...rowOf(delivery), n, key, hook_id: hookId, ignored_by: plan.ignoredBy ?? null }
  const targets = [...new Set(plan.targets)]
  yield* askAll([
    insert('delivery', row),
    { sql: 'INSERT INTO body (n, bytes) VALUES (?, ?)', values: [n, delivery.body] },
    ...insertForwards(n, targets, receivedAt),
    ...targets.map((target) => count(target, undefined, 'waiting')),
    countMinute(receivedAt, 1, 0),
  ])
  return { n, duplicate: false, targets, ...(plan.ignoredBy !== undefined && { ignoredBy: plan.ignoredBy }) }
}

/** Without the id of its hook, an equal id may be chance. */
function isOfAnotherHook(known: Known, delivery: Delivery): boolean {
  const { hookId, repo, number } = delivery
  const isSame = known.event === eventOf(delivery) && known.repo === repo && known.number === number
  return isSame && hookId !== '' && known.hook_id !== '' && known.hook_id !== hookId
}

/** A row of `delivery`, without its number, key, hook and what ignores it. */
function rowOf(delivery: Delivery): Readonly<Record<string, SqlValue>> {
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
  const earlier = due.filter((target) => before.has(target))
  if (due.length > 0)
    yield* askAll([
      ...earlier.map((target) => ({
        sql: `UPDATE forward SET status = 'waiting', tries = 0, since = ?, reason = NULL WHERE n = ? AND target = ?`,
        values: [since, n, target],
      })),
      ...insertForwards(
        n,
        due.filter((target) => !before.has(target)),
        since,
      ),
      ...due.map((target) => count(target, before.get(target), 'waiting')),
    ])
  const failures = [...before.values()].filter((status) => status === 'failed').length
  if (failures > 0 && earlier.filter((target) => before.get(target) === 'failed').length === failures)
    yield* countFailed(n, -1)
  const waiting = [...before].filter(([, status]) => status === 'waiting').map(([target]) => target)
  return [...new Set([...waiting, ...due])]
}

/** What a target's answer may fill of an entry: the power of two above what one that is down for 24 h makes, probed once a minute. */
const MAX_ATTEMPTS = 4096
/** Attempts that count as one when they follow each other with the same error. */
const ALIKE: readonly string[] = ['unreachable', 'timed out']

/**
 * Records an attempt and the forward's new status; nothing when the entry is gone. To record the same attempt again changes nothing more,
 * so that a caller who does not know whether a write succeeded may repeat it.
 */
export function* record(n: number, attempt: Attempt, forward: Forward): Tx<void> {
  const { target, at, outcome, status, ms } = attempt
  const [last = [], newest = []] = yield* askAll([
    {
      sql: 'SELECT seq, at, outcome, error FROM attempt WHERE n = ? AND target = ? ORDER BY seq DESC LIMIT 1',
      values: [n, target],
    },
    { sql: 'SELECT coalesce(max(seq), 0) AS seq FROM attempt WHERE n = ?', values: [n] },
  ])
  if (!(yield* finish(n, target, forward))) return
  const answer = attempt.answer.subarray(0, MAX_START)
  const error = attempt.error?.slice(0, MAX_ERROR) ?? null
  const [before] = last
  if (before && before['at'] === at && before['outcome'] === outcome) return
  if (before && ALIKE.includes(outcome) && before['outcome'] === outcome && before['error'] === error) {
    const sql = 'UPDATE attempt SET count = count + ?, at = ?, ms = ?, answer = ? WHERE n = ? AND seq = ?'
    yield* ask(sql, attempt.count, at, ms, answer, n, before['seq'] ?? null)
    return
  }
  const seq = Math.min(Number(newest[0]?.['seq']) + 1, MAX_ATTEMPTS)
  const headers = attempt.headers ? JSON.stringify(attempt.headers) : null
  // Beyond that, the last one is replaced.
  if (seq === MAX_ATTEMPTS) yield* ask('DELETE FROM attempt WHERE n = ? AND seq = ?', n, seq)
  const row = { n, seq, target, at, outcome, status, ms, answer, headers, error, count: attempt.count }
  yield* askAll([insert('attempt', row)])
}

/** Sets the status of a forward; false when it is gone. */
export function* finish(n: number, target: string, { status, tries, since, reason }: Forward): Tx<boolean> {
  const rows = yield* ask<{ target: string; status: ForwardStatus }>(
    'SELECT target, status FROM forward WHERE n = ?',
    n,
  )
  const before = rows.find((row) => row.target === target)
  if (!before) return false
  yield* askAll([
    {
      sql: 'UPDATE forward SET status = ?, tries = ?, since = ?, reason = ? WHERE n = ? AND target = ?',
      values: [status, tries, since, reason ?? null, n, target],
    },
    ...(before.status === status ? [] : [count(target, before.status, status)]),
  ])
  const others = rows.filter((row) => row.target !== target && row.status === 'failed').length
  const [was, is] = [before.status === 'failed', status === 'failed']
  if (was !== is && others === 0) yield* countFailed(n, is ? 1 : -1)
  return true
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
  for (const each of counts)
    yield* ask(
      `UPDATE target SET ${each.status} = ${each.status} - ? WHERE target = ?`,
      each.count,
      each.target,
    )
  const rows = yield* ask(`DELETE FROM delivery WHERE ${which} RETURNING n`, after, last)
  yield* ask('DELETE FROM minute WHERE minute < (SELECT min(received_at) FROM delivery) / 60000')
  yield* ask('DELETE FROM target WHERE waiting = 0 AND succeeded = 0 AND failed = 0')
  return { last, removed: rows.length }
}

export function* addDuplicates(counts: ReadonlyMap<number, number>): Tx<void> {
  yield* askAll(
    [...counts].map(([n, more]) => ({
      sql: 'UPDATE delivery SET duplicates = duplicates + ? WHERE n = ?',
      values: [more, n],
    })),
  )
}

/** A row that nothing ever sees. It is written and flushed all the same, so that an ill disk fails, or a server that only reads. */
export function* check(): Tx<void> {
  yield* askAll([
    { sql: `INSERT INTO kv (key, value) VALUES ('check', '')`, values: [] },
    { sql: `DELETE FROM kv WHERE key = 'check'`, values: [] },
  ])
}

function insert(table: string, row: Readonly<Record<string, SqlValue>>): Statement {
  const columns = Object.keys(row)
  return {
    sql: `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${marks(columns.length)})`,
    values: Object.values(row),
  }
}

/** One row for each target. */
function insertForwards(n: number, targets: readonly string[], since: number): Statement[] {
  if (targets.length === 0) return []
  const rows = targets.map(() => `(?, ?, ?, 'waiting', 0, ?)`).join(', ')
  return [
    {
      sql: `INSERT INTO forward (n, target, position, status, tries, since) VALUES ${rows}`,
      values: targets.flatMap((target, position) => [n, target, position, since]),
    },
  ]
}

/** Counts a forward to a target in its new status, and no longer in the one before. */
function count(target: string, from: ForwardStatus | undefined, to: ForwardStatus): Statement {
  const change = (status: ForwardStatus): number => (status === to ? 1 : status === from ? -1 : 0)
  const [waiting, succeeded, failed] = [change('waiting'), change('succeeded'), change('failed')]
  return {
    sql: `INSERT INTO target (target, waiting, succeeded, failed) VALUES (?, ?, ?, ?)
      ON CONFLICT (target) DO UPDATE SET waiting = target.waiting + excluded.waiting,
        succeeded = target.succeeded + excluded.succeeded, failed = target.failed + excluded.failed`,
    values: [target, waiting, succeeded, failed],
  }
}

function countMinute(at: number, received: number, failed: number): Statement {
  return {
    sql: `INSERT INTO minute (minute, received, failed) VALUES (?, ?, ?)
      ON CONFLICT (minute) DO UPDATE SET received = minute.received + excluded.received, failed = minute.failed + excluded.failed`,
    values: [Math.floor(at / 60_000), received, failed],
  }
}

/** Counts an entry in its minute as failed, or no longer. */
function* countFailed(n: number, change: 1 | -1): Tx<void> {
  const [row] = yield* ask<{ at: number }>('SELECT received_at AS at FROM delivery WHERE n = ?', n)
  if (row) yield* askAll([countMinute(row.at, 0, change)])
}
