import type { Summary } from '../../journal/delivery.js'
import { createColumns } from './line.js'
import { summaryObject } from './object.js'
import type { Reading } from './open.js'
import { progressOf } from './progress.js'

/** Prints entries, each on a line. */
export interface Printer {
  /** Makes room for an entry that is still to come. */
  fit(summary: Summary): void
  print(summary: Summary): void
}

export function createPrinter({ journal, output }: Reading, { json = false }: { json?: boolean }): Printer {
  const columns = createColumns(output.resultPaint)
  return {
    fit: (summary) => columns.fit(summary),
    print(summary) {
      const progress = progressOf(journal, summary)
      if (json) output.object(summaryObject(summary, progress))
      else output.result(columns.line(summary, progress))
    },
  }
}
