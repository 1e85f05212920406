import { countForwards } from './counts.js'
import { setImmediate } from 'node:timers/promises'
import { silentLog, type Log } from '../base/log.js'
import { type Clock, systemClock } from '../base/time.js'
import type { Sql, SqlRow, Step, TransactionOptions } from '../store/sql.js'
import { appendSteps, receiptOf } from './append.js'
import { dedupeKey, findKey } from './dedupe.js'
import type { Delivery, Receipt, Summary } from './delivery.js'
import { createDuplicateCounts } from './duplicates.js'
import type { OnDuplicate } from './forward.js'
import type { Journal } from './journal.js'
import { createReader } from './reader.js'
import { forwardStep, recordSteps } from './record.js'
import { sweep } from './retention.js'
import { type AttemptRow, toAttempt } from './rows.js'
import { type Filter, passes, selectNumbers } from './select.js'

/** Lets the journal be written only while a condition holds, such as that the profile is this process's own. */
export interface Guard {
  /** A required step that is put first into every transaction; undefined for none. */
  readonly statement: () => Step | undefined
  /** Called when that step returned no row. Rejects with the reason. */
  readonly refuse: () => Promise<never>
}

export interface JournalOptions {
  /** The ids of the targets that a delivery is to be forwarded to. Must not throw. */
  readonly targetsOf?: (delivery: Delivery) => readonly string[]
  /** Default `if-failed`. */
  readonly onDuplicate?: OnDuplicate
  readonly guard?: Guard
  /** The wall clock. */
  readonly clock?: Clock
  /** Gets a line for each entry that cannot be read. */
  readonly log?: Log
}

/** Entries read at once: some milliseconds, and bounded memory. */
const PAGE = 256

/** The journal in a profile's database. */
export function openJournal(sql: Sql, options: JournalOptions = {}): Journal {
  const {
    targetsOf = () => [],
    onDuplicate = 'if-failed',
    guard,
    clock = systemClock,
    log = silentLog,
  } = options
  const reader = createReader(sql, log)

  const write = async (
    steps: readonly Step[],
    options?: TransactionOptions,
  ): Promise<readonly (readonly SqlRow[])[]> => {
    const check = guard?.statement()
    const rows = await sql.transaction(check ? [check, ...steps] : steps, options)
    if (!rows) return refused()
    return check ? rows.slice(1) : rows
  }
  const refused = async (): Promise<never> => {
    await guard?.refuse()
    throw new Error('unreachable: only the guard requires a row')
  }
  async function* select(filter: Filter = {}): AsyncGenerator<Summary> {
    let left = filter.last ?? Infinity
    for (let before = filter.before ?? Number.MAX_SAFE_INTEGER; left > 0;) {
      const limit = Math.min(left, PAGE)
      const numbers = await reader.numbers(before, limit, () =>
        selectNumbers(sql, filter, { before, limit, now: clock() }),
      )
      for (const summary of await reader.summaries(numbers)) {
        if (!passes(summary, filter)) continue
        yield summary
        left--
      }
      if (numbers.length < limit) return
      // A database in this thread leaves no time to anything else, such as Ctrl-C.
      await setImmediate()
      before = numbers.at(-1) ?? 0
    }
  }

  const duplicates = createDuplicateCounts(write)
  const append = async (
    delivery: Delivery,
    key: string,
    onLate?: (receipt: Receipt) => void,
  ): Promise<Receipt> => {
    const rows = await write(appendSteps(delivery, key, targetsOf(delivery), onDuplicate), {
      grows: true,
      onLate: (rows) => onLate?.({ ...receiptOf(rows), late: true }),
    })
    const receipt = receiptOf(rows)
    if (receipt.duplicate) duplicates.add(receipt.n)
    return receipt
  }
  let repeatable: Promise<unknown> = Promise.resolve()
  return {
    async append(delivery, onLate) {
      if (!delivery.restored?.repeatable) return append(delivery, dedupeKey(delivery), onLate)
      // One after the other: of copies that come at once, each must find the one before it.
      const before = repeatable
      const appended = (async () => {
        await before
        return append(delivery, await findKey(sql, delivery), onLate)
      })()
      repeatable = appended.catch(() => {})
      return appended
    },
    flush: () => duplicates.flush(),
    read: (n) => reader.read(n),
    newest: () => reader.newest(),
    async count() {
      const [row] = await sql.query<{ count: number }>('SELECT count(*) AS count FROM delivery')
      return row?.count ?? 0
    },
    select,
    after: (n, limit) => reader.after(n, limit),
    summaries: (numbers) => reader.summaries(numbers),
    waiting: () => reader.waiting(),
    async record(n, attempt, forward) {
      await write(recordSteps(n, attempt, forward))
    },
    async finish(n, target, forward) {
      await write([forwardStep(n, target, forward)])
    },
    forwards: (n) => reader.forwards(n),
    counts: () => countForwards(sql),
    async attempts(n) {
      const rows = await sql.query<AttemptRow>('SELECT * FROM attempt WHERE n = ? ORDER BY seq', [n])
      return rows.map(toAttempt)
    },
    sweep: (retention) => sweep(sql, retention, write),
  }
}
