import type { SqlRow, Step } from '../store/sql.js'
import { dedupeKey } from './dedupe.js'
import type { Delivery, Receipt } from './delivery.js'
import type { OnDuplicate } from './forward.js'
import { newRow } from './rows.js'

/** Which status a target's forward must have to be forwarded again. */
const DUE: Readonly<Record<OnDuplicate, string>> = {
  never: `forward.status = 'never'`,
  'if-failed': `forward.status = 'failed'`,
  always: `forward.status <> 'waiting'`,
}

/**
 * The steps that record a delivery and its forwards. All are decided by the database at the time of the write: whether the
 * delivery is there already, its number, and what of it is forwarded (again).
 */
export function appendSteps(
  delivery: Delivery,
  targets: readonly string[],
  rule: OnDuplicate,
): readonly Step[] {
  const { event, action, receivedAt } = delivery
  const key = dedupeKey(delivery)
  const row = newRow(delivery)
  const columns = Object.keys(row)
  const forwards = [...new Set(targets)].map((target, position): Step => {
    // A duplicate adds targets that are new, except where the rule says never. One that came under another event does not:
    // the event is not signed, and must not bring a delivery to other targets.
    const isNew = rule === 'never' ? 'AND duplicates = 0' : ''
    return {
      sql: `INSERT INTO forward (n, target, position, status, tries, since)
        SELECT n, ?, ?, 'waiting', 0, ? FROM delivery WHERE dedupe_key = ? AND event = ? AND action IS NOT DISTINCT FROM ? ${isNew}
        ON CONFLICT (n, target) DO UPDATE SET status = 'waiting', tries = 0, since = excluded.since, reason = NULL
        WHERE ${DUE[rule]}`,
      values: [target, position, receivedAt, key, event, action],
    }
  })
  return [
    {
      sql: `INSERT INTO delivery (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
        ON CONFLICT (dedupe_key) DO UPDATE SET duplicates = delivery.duplicates + 1`,
      values: Object.values(row),
    },
    {
      sql: 'INSERT INTO body (n, bytes) SELECT n, ? FROM delivery WHERE dedupe_key = ? AND duplicates = 0',
      values: [delivery.body, key],
    },
    ...forwards,
    {
      sql: `SELECT delivery.n, duplicates, target FROM delivery
        LEFT JOIN forward ON forward.n = delivery.n AND status = 'waiting'
        WHERE dedupe_key = ? ORDER BY position, target`,
      values: [key],
    },
  ]
}

/** What the last of the steps says. */
export function receiptOf(rows: readonly SqlRow[]): Receipt {
  const [first] = rows
  return {
    n: Number(first?.['n']),
    duplicate: Number(first?.['duplicates']) > 0,
    targets: rows.flatMap(({ target }) => (typeof target === 'string' ? [target] : [])),
  }
}
