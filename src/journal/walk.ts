import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../base/time.js'
import type { Sql } from '../store/sql.js'
import type { WalkStep } from './journal.js'
import type { Reader } from './reader.js'
import { type Condition, type Filter, passes, selectNumbers, timeConditions, windowOf } from './select.js'

/** Entries read at once: some milliseconds, and bounded memory. */
const PAGE = 256

/** Makes the function that finds the entries that pass a filter, newest first, in steps of some milliseconds. */
export function createWalk(sql: Sql, reader: Reader, clock: Clock) {
  return async function* walk(filter: Filter): AsyncGenerator<WalkStep> {
    const window = windowOf(filter)
    const isWindowed = window < Infinity
    let before = filter.before ?? Number.MAX_SAFE_INTEGER
    if (isWindowed) before = Math.min(before, (await reader.newest()) + 1)
    let time: readonly Condition[] | undefined
    for (let left = filter.last ?? Infinity; left > 0 && before > 1;) {
      const limit = Math.min(left, PAGE)
      const from = isWindowed ? Math.max(0, before - window) : 0
      const numbers = await reader.numbers(before, limit, async () =>
        selectNumbers(sql, filter, (time ??= await timeConditions(sql, filter, clock())), {
          before,
          from,
          limit,
        }),
      )
      const summaries = await reader.summaries(numbers)
      const found = summaries.filter((summary) => passes(summary, filter)).slice(0, left)
      left -= found.length
      const isFull = numbers.length >= limit
      before = isFull ? (numbers.at(-1) ?? 0) : from
      yield { found, before }
      if (!isFull && !isWindowed) return
      // A database in this thread leaves no time to anything else, such as Ctrl-C.
      await setImmediate()
    }
  }
}
