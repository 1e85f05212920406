import type { Sql } from '../store/sql.js'
import { appendSteps, receiptOf } from './append.js'
import { dedupeKey, findKey } from './dedupe.js'
import type { Delivery, Receipt } from './delivery.js'
import type { DuplicateCounts } from './duplicates.js'
import type { OnDuplicate } from './forward.js'
import type { Write } from './guarded-write.js'
import type { AppendOptions, Journal } from './journal.js'

/** What happens to a delivery that is appended. */
export interface AppendRules {
  /** The ids of the targets that a delivery is to be forwarded to. Must not throw. */
  readonly targetsOf?: (delivery: Delivery) => readonly string[]
  /** The match of the rule that keeps it from every target, if there is one. Must not throw. */
  readonly ignoredBy?: (delivery: Delivery) => string | undefined
  /** Default `if-failed`. */
  readonly onDuplicate?: OnDuplicate
}

interface AppenderParts {
  readonly sql: Sql
  readonly write: Write
  readonly duplicates: Pick<DuplicateCounts, 'add'>
  /** Called with the number of each entry that is new or whose forwards have changed. */
  readonly changed: (n: number) => void
}

/** Makes {@link Journal.append}. */
export function createAppender(
  { sql, write, duplicates, changed }: AppenderParts,
  { targetsOf = () => [], ignoredBy = () => undefined, onDuplicate = 'if-failed' }: AppendRules,
): Journal['append'] {
  const append = async (
    delivery: Delivery,
    key: string,
    { onLate, targets = targetsOf(delivery) }: AppendOptions = {},
  ): Promise<Receipt> => {
    const plan = { targets, ignoredBy: ignoredBy(delivery) }
    const rows = await write(appendSteps(delivery, key, plan, onDuplicate), {
      grows: true,
      announce: [],
      onLate(rows) {
        const receipt = receiptOf(rows)
        changed(receipt.n)
        onLate?.({ ...receipt, late: true })
      },
    })
    const receipt = receiptOf(rows)
    if (receipt.duplicate) duplicates.add(receipt.n)
    if (!receipt.duplicate || receipt.targets.length > 0) changed(receipt.n)
    return receipt
  }
  let repeatable: Promise<unknown> = Promise.resolve()
  return async (delivery, options) => {
    if (!delivery.restored?.repeatable) return append(delivery, dedupeKey(delivery), options)
    // One after the other: of copies that come at once, each must find the one before it.
    const before = repeatable
    const appended = (async () => {
      await before
      return append(delivery, await findKey(sql, delivery), options)
    })()
    repeatable = appended.catch(() => {})
    return appended
  }
}
