import type { Step, TransactionOptions } from '../store/sql.js'
import { waitingWord } from './announced.js'

/** One second between two writes: a person who watches the number sees it change soon enough. */
const PERIOD_MS = 1_000
/** Entries whose counts wait. A burst of duplicates of more entries is written earlier, in one short transaction. */
const MAX_ENTRIES = 256

/** Counts how often deliveries came again. */
export interface DuplicateCounts {
  /** Counts one more for the entry. */
  add(n: number): void
  /** Writes what was counted since the last write. Does not reject: a count that cannot be written is lost. */
  flush(): Promise<void>
}

/**
 * Counts duplicates in memory. The first is written at once, those that follow together, once a second, so that a flood of
 * duplicates costs no commit each. A crash loses the counts of a second, and nothing else. `onWritten` is called with the number
 * of each entry whose count was written; it must not throw.
 */
export function createDuplicateCounts(
  write: (steps: readonly Step[], options: TransactionOptions) => Promise<unknown>,
  onWritten: (n: number) => void,
): DuplicateCounts {
  let counts = new Map<number, number>()
  let timer: NodeJS.Timeout | undefined
  let written = Promise.resolve()
  const writeAll = async (given: ReadonlyMap<number, number>): Promise<void> => {
    await write(
      [...given].map(([n, count]) => ({
        sql: 'UPDATE delivery SET duplicates = duplicates + ? WHERE n = ?',
        values: [count, n],
      })),
      // One that came again may wait again.
      { announce: [...given.keys()].map(waitingWord) },
    )
    for (const n of given.keys()) onWritten(n)
  }
  const flush = async (): Promise<void> => {
    if (counts.size > 0) written = both(written, writeAll(counts))
    counts = new Map()
    await written
  }
  const startPeriod = (): void => {
    timer = setTimeout(() => {
      timer = undefined
      if (counts.size === 0) return
      void flush()
      startPeriod()
    }, PERIOD_MS).unref()
  }
  return {
    add(n) {
      counts.set(n, (counts.get(n) ?? 0) + 1)
      if (timer && counts.size < MAX_ENTRIES) return
      void flush()
      if (!timer) startPeriod()
    },
    flush,
  }
}

async function both(one: Promise<void>, other: Promise<unknown>): Promise<void> {
  await Promise.allSettled([one, other])
}
