import type { SqlRow, Step } from '../store/sql.js'
import type { Delivery, Receipt } from './delivery.js'
import type { OnDuplicate } from './forward.js'
import { newRow } from './rows.js'

/** What is done with a new delivery. */
interface Plan {
  /** The ids of the targets that it is forwarded to. */
  readonly targets: readonly string[]
  /** The match of the rule that ignores it; there are no targets then. */
  readonly ignoredBy?: string | undefined
}

/** Which status a target's forward must have to be forwarded again. */
const DUE: Readonly<Record<OnDuplicate, string>> = {
  never: `forward.status = 'never'`,
  'if-failed': `forward.status = 'failed'`,
  always: `forward.status <> 'waiting'`,
}

/**
 * The steps that record a delivery and its forwards. All are decided by the database at the time of the write: whether the
 * delivery is there already, its number, and what of it is forwarded (again). For a duplicate that is not forwarded they
 * change nothing, so that it costs no flush.
 */
export function appendSteps(
  delivery: Delivery,
  key: string,
  { targets, ignoredBy }: Plan,
  rule: OnDuplicate,
): readonly Step[] {
  const { event, action, repo, number, receivedAt, deliveryId, hookId } = delivery
  // Without the id of its hook, an equal id may be chance.
  const sameEvent = [hookId === '' ? null : deliveryId, event, action, repo, number, hookId]
  const row = { ...newRow(delivery), dedupe_key: key }
  const columns = Object.keys(row)
  const forwards = [...new Set(targets)].map((target, position): Step => {
    // A duplicate adds targets that are new, except where the rule says never. One that came under another event does not:
    // the event is not signed, and must not bring a delivery to other targets.
    const isNew = rule === 'never' ? `AND ${IS_NEW}` : ''
    // Not as an index can find it: a server that does not know its tables yet would read all entries of the event.
    return {
      sql: waitSql(
        `dedupe_key = ? AND event || '' = ? AND action IS NOT DISTINCT FROM ? AND ${IS_FIRST} ${isNew}`,
        DUE[rule],
      ),
      values: [target, position, receivedAt, key, event, action],
    }
  })
  return [
    {
      sql: `INSERT INTO delivery (${columns.join(', ')}, ignored_by) VALUES (${columns.map(() => '?').join(', ')}, ${IGNORED_BY})
        ON CONFLICT (dedupe_key) DO NOTHING`,
      values: [...Object.values(row), ignoredBy ?? null, ...sameEvent],
    },
    ...forwards,
    {
      sql: `INSERT INTO body (n, bytes) SELECT n, ? FROM delivery WHERE dedupe_key = ? AND ${IS_NEW} RETURNING n`,
      values: [delivery.body, key],
    },
    {
      sql: `SELECT delivery.n, ignored_by, target FROM delivery
        LEFT JOIN forward ON forward.n = delivery.n AND status = 'waiting'
        WHERE dedupe_key = ? ORDER BY position, target`,
      values: [key],
    },
  ]
}

/**
 * The rule that ignores it, or the number of the entry with the same event: GitHub gives an event one id for all hooks that get it
 * (https://docs.github.com/rest/repos/webhooks, `guid`). Written so that a server which does not know its tables yet finds it by the id.
 */
const IGNORED_BY = `coalesce(?, (SELECT '#' || min(other.n + 0) FROM delivery AS other
  WHERE other.delivery_id = ? AND other.event || '' = ? AND other.action IS NOT DISTINCT FROM ?
    AND other.repo IS NOT DISTINCT FROM ? AND other.number IS NOT DISTINCT FROM ?
    AND other.hook_id <> ? AND other.hook_id <> ''))`

/** Whether no other entry has its event. */
const IS_FIRST = `coalesce(ignored_by, '') NOT LIKE '#%'`

/** Lets the forward of the one entry `which` to a target wait: a new forward, or one that is `due`. */
function waitSql(which: string, due: string): string {
  return `INSERT INTO forward (n, target, position, status, tries, since)
    SELECT n, ?, ?, 'waiting', 0, ? FROM delivery WHERE ${which}
    ON CONFLICT (n, target) DO UPDATE SET status = 'waiting', tries = 0, since = excluded.since, reason = NULL
    WHERE ${due}`
}

/** The steps that let an entry's forwards to these targets wait again, from `since` on, even those that succeeded. */
export function againSteps(n: number, targets: readonly string[], since: number): readonly Step[] {
  return [
    ...targets.map((target, position) => ({
      sql: waitSql('n = ?', DUE.always),
      values: [target, position, since, n],
    })),
    { sql: 'SELECT n FROM delivery WHERE n = ?', values: [n] },
  ]
}

/** True until the body is inserted, at the end of the transaction that inserts the delivery. */
const IS_NEW = 'NOT EXISTS (SELECT 1 FROM body WHERE body.n = delivery.n)'

/** What the last two of the steps say. */
export function receiptOf(results: readonly (readonly SqlRow[])[]): Receipt {
  const [bodies = [], rows = []] = results.slice(-2)
  const ignoredBy = rows[0]?.['ignored_by']
  return {
    n: Number(rows[0]?.['n']),
    duplicate: bodies.length === 0,
    targets: rows.flatMap(({ target }) => (typeof target === 'string' ? [target] : [])),
    ...(typeof ignoredBy === 'string' && { ignoredBy }),
  }
}
