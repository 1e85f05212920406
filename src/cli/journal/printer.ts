import type { Summary } from '../../journal/delivery.js'
import { createColumns } from './line.js'
import { summaryObject } from './object.js'
import type { JournalReader } from './open.js'
import { progressOf } from './progress.js'

/** Prints entries, one per line. */
export interface Printer {
  /** Widens the columns for an entry that is printed later. */
  fit(summary: Summary): void
  /** @throws RelayError `storage` */
  print(summary: Summary): Promise<void>
}

export function createPrinter({ journal, output }: JournalReader, { json = false }): Printer {
  const columns = createColumns()
  return {
    fit: (summary) => columns.fit(summary),
    async print(summary) {
      const progress = await progressOf(journal, summary)
      if (json) output.object(summaryObject(summary, progress))
      else output.result(columns.line(summary, progress))
    },
  }
}
