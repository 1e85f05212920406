import { silentLog, type Log } from '../base/log.js'
import { type Clock, systemClock } from '../base/time.js'
import type { Sql } from '../store/sql.js'
import { changedWord, waitingWord } from './announced.js'
import { againSteps } from './append.js'
import { type AppendRules, createAppender } from './appender.js'
import { countEntries, countForwards } from './counts.js'
import { createDuplicateCounts } from './duplicates.js'
import { createWrite, type Guard } from './guarded-write.js'
import type { Journal, JournalChange } from './journal.js'
import { lastAttempts } from './last-attempts.js'
import { minutesOf } from './minutes.js'
import { createReader } from './reader.js'
import { forwardStep, recordSteps } from './record.js'
import { knownIds } from './removed.js'
import { sweep } from './retention.js'
import { type AttemptRow, toAttempt } from './rows.js'
import { numbersWithText } from './select.js'
import { createWalk } from './walk.js'

export interface JournalOptions extends AppendRules {
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
  const { guard, onChange = () => {}, clock = systemClock, log = silentLog } = options
  const reader = createReader(sql, log)
  const walk = createWalk(sql, reader, clock)
  const write = createWrite(sql, guard)
  const changed = (n: number): void => onChange({ type: 'changed', n })
  const duplicates = createDuplicateCounts(write, changed)
  return {
    append: createAppender({ sql, write, duplicates, changed }, options),
    async again(n, targets) {
      const found = (await write(againSteps(n, targets, clock()), { announce: [waitingWord(n)] })).at(-1)
      changed(n)
      return found?.length === 1
    },
    flush: () => duplicates.flush(),
    read: (n) => reader.read(n),
    newest: () => reader.newest(),
    count: () => countEntries(sql),
    known: (deliveryIds) => knownIds(sql, deliveryIds),
    async *select(filter = {}) {
      for await (const { found } of walk(filter)) yield* found
    },
    walk,
    withText: (numbers, text) => numbersWithText(sql, numbers, text),
    after: (n, limit) => reader.after(n, limit),
    summaries: (numbers) => reader.summaries(numbers),
    waiting: (filter) => reader.waiting(filter),
    async record(n, attempt, forward, fence) {
      await write(recordSteps(n, attempt, forward), { fence, announce: [changedWord(n)] })
      changed(n)
    },
    async finish(n, target, forward, fence) {
      await write([forwardStep(n, target, forward)], { fence, announce: [changedWord(n)] })
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
