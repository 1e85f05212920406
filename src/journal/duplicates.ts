import type { Step } from '../store/sql.js'

/** One second: a person who watches the number sees it change soon enough. */
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
 * Counts duplicates in memory and writes the counts together, once a second, so that a flood of duplicates costs no commit
 * each. A crash loses the counts of a second, and nothing else.
 */
export function createDuplicateCounts(write: (steps: readonly Step[]) => Promise<unknown>): DuplicateCounts {
  let counts = new Map<number, number>()
  let timer: NodeJS.Timeout | undefined
  const flush = async (): Promise<void> => {
    clearTimeout(timer)
    timer = undefined
    if (counts.size === 0) return
    const steps = [...counts].map(([n, count]) => ({
      sql: 'UPDATE delivery SET duplicates = duplicates + ? WHERE n = ?',
      values: [count, n],
    }))
    counts = new Map()
    await write(steps).catch(() => {})
  }
  return {
    add(n) {
      counts.set(n, (counts.get(n) ?? 0) + 1)
      if (counts.size >= MAX_ENTRIES) void flush()
      else timer ??= setTimeout(() => void flush(), PERIOD_MS).unref()
    },
    flush,
  }
}
