import { silentLog, type Log } from '../base/log.js'
import { type Clock, systemClock } from '../base/time.js'
import type { Sql, SqlRow, Step, TransactionOptions } from '../store/sql.js'
import { againSteps, appendSteps, receiptOf } from './append.js'
import { dedupeKey, findKey } from './dedupe.js'
import type { Delivery, Receipt } from './delivery.js'
import { createDuplicateCounts } from './duplicates.js'
import type { ForwardCounts, ForwardStatus, OnDuplicate } from './forward.js'
import type { AppendOptions, Journal, JournalChange } from './journal.js'
import { minutesOf } from './minutes.js'
import { createReader } from './reader.js'
import { forwardStep, recordSteps } from './record.js'
import { knownIds } from './removed.js'
import { sweep } from './retention.js'
import { type AttemptRow, toAttempt } from './rows.js'
import { lastAttempts } from './last-attempts.js'
import { numbersWithText } from './select.js'
import { createWalk } from './walk.js'

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
  /** The match of the rule that keeps it from every target, if there is one. Must not throw. */
  readonly ignoredBy?: (delivery: Delivery) => string | undefined
  /** Default `if-failed`. */
  readonly onDuplicate?: OnDuplicate
  readonly guard?: Guard
  /** Called after each change that this process has made durable. Must not throw. */
  readonly onChange?: (change: JournalChange) => void
  /** The wall clock. */
  readonly clock?: Clock
  /** Gets a line for each entry that cannot be read. */
  readonly log?: Log
}

/** The journal in a profile's database. */
export function openJournal(sql: Sql, options: JournalOptions = {}): Journal {
  const {
    targetsOf = () => [],
    ignoredBy = () => undefined,
    onDuplicate = 'if-failed',
    guard,
    onChange = () => {},
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
  const walk = createWalk(sql, reader, clock)
  const changed = (n: number): void => onChange({ type: 'changed', n })
  const duplicates = createDuplicateCounts(write, changed)
  const append = async (
    delivery: Delivery,
    key: string,
    { onLate, targets = targetsOf(delivery) }: AppendOptions = {},
  ): Promise<Receipt> => {
    const plan = { targets, ignoredBy: ignoredBy(delivery) }
    const rows = await write(appendSteps(delivery, key, plan, onDuplicate), {
      grows: true,
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
  return {
    async append(delivery, options) {
      if (!delivery.restored?.repeatable) return append(delivery, dedupeKey(delivery), options)
      // One after the other: of copies that come at once, each must find the one before it.
      const before = repeatable
      const appended = (async () => {
        await before
        return append(delivery, await findKey(sql, delivery), options)
      })()
      repeatable = appended.catch(() => {})
      return appended
    },
    async again(n, targets) {
      const found = (await write(againSteps(n, targets, clock()))).at(-1)
      changed(n)
      return found?.length === 1
    },
    flush: () => duplicates.flush(),
    read: (n) => reader.read(n),
    newest: () => reader.newest(),
    async count() {
      const [row] = await sql.query<{ count: number }>('SELECT count(*) AS count FROM delivery')
      return row?.count ?? 0
    },
    known: (deliveryIds) => knownIds(sql, deliveryIds),
    async *select(filter = {}) {
      for await (const { found } of walk(filter)) yield* found
    },
    walk,
    withText: (numbers, text) => numbersWithText(sql, numbers, text),
    after: (n, limit) => reader.after(n, limit),
    summaries: (numbers) => reader.summaries(numbers),
    waiting: () => reader.waiting(),
    async record(n, attempt, forward) {
      await write(recordSteps(n, attempt, forward))
      changed(n)
    },
    async finish(n, target, forward) {
      await write([forwardStep(n, target, forward)])
      changed(n)
    },
    forwards: (n) => reader.forwards(n),
    counts: () => countForwards(sql),
    minutes: (from, until) => minutesOf(sql, from, until),
    async attempts(n) {
      const rows = await sql.query<AttemptRow>('SELECT * FROM attempt WHERE n = ? ORDER BY seq', [n])
      return rows.map(toAttempt)
    },
    lastAttempts: (numbers) => lastAttempts(sql, numbers),
    async sweep(retention) {
      const removed = await sweep(sql, retention, write)
      const [oldest] = removed > 0 ? await reader.after(0, 1) : []
      if (oldest) onChange({ type: 'removed', oldest: oldest.n })
      return removed
    },
  }
}

const NO_FORWARDS: ForwardCounts = { waiting: 0, succeeded: 0, failed: 0 }

/** The forwards of each target, by status. */
async function countForwards(sql: Sql): Promise<ReadonlyMap<string, ForwardCounts>> {
  const rows = await sql.query<{ target: string; status: ForwardStatus; count: number }>(
    'SELECT target, status, count(*) AS count FROM forward GROUP BY target, status',
  )
  const counts = new Map<string, ForwardCounts>()
  for (const { target, status, count } of rows)
    counts.set(target, { ...(counts.get(target) ?? NO_FORWARDS), [status]: count })
  return counts
}
