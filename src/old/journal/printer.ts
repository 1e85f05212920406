import { type NamedTarget, publicId, shortNames } from '../../dispatch/routes.js'
import type { Summary } from '../../journal/types.js'
import { createColumns as createRows, type Row } from '../output/delivery-columns.js'
import { attemptCell } from '../output/target-cell.js'
import { spokenTime } from '../output/time.js'
import { ignoredText } from '../../journal/types.js'
import { createColumns, noteOf } from './line.js'
import { summaryObject } from './object.js'
import type { JournalReader } from './open.js'
import { progressOf, type TargetProgress } from './progress.js'

/** Prints entries, one per line. */
export interface Printer {
  /** Widens the columns for an entry that is printed later. */
  fit(summary: Summary): void
  /** Prints the names of the columns, for a person. */
  header(): void
  /** @throws RelayError `storage` */
  print(summary: Summary): Promise<void>
}

interface Options {
  readonly json?: boolean | undefined
  /** Targets that have names. */
  readonly named?: readonly NamedTarget[]
}

/** As objects; for a person, in columns as wide as the terminal; else in columns with everything in full. */
export function createPrinter({ journal, output }: JournalReader, options: Options): Printer {
  const { json = false, named = [] } = options
  if (!json && output.isTerminal) return createRowPrinter({ journal, output }, named)
  const columns = createColumns()
  return {
    fit: (summary) => columns.fit(summary),
    header() {},
    async print(summary) {
      const progress = await progressOf(journal, summary)
      if (json) output.object(summaryObject(summary, progress))
      else output.result(columns.line(summary, progress))
    },
  }
}

function createRowPrinter(
  { journal, output }: Pick<JournalReader, 'journal' | 'output'>,
  named: readonly NamedTarget[],
): Printer {
  const rows = createRows()
  const now = Date.now()
  const rowOf = (summary: Summary, progress: readonly TargetProgress[]): Row => {
    const names = shortNames([...named, ...progress])
    const cells = progress.map(({ id, forward, attempts }) =>
      attemptCell(names.get(id) ?? id, forward, attempts.at(-1)),
    )
    const note = notesOf(summary, progress, named.length > 0).join(', ')
    return { time: spokenTime(summary.receivedAt, now), n: summary.n, delivery: summary, note, cells }
  }
  return {
    fit(summary) {
      const progress = Object.entries(summary.forwards).map(([id, forward]) => ({
        id: publicId(id),
        label: '',
        forward,
        attempts: [],
      }))
      rows.fit(rowOf(summary, progress))
    },
    header: () => output.result(rows.header(output.width)),
    async print(summary) {
      output.result(rows.line(rowOf(summary, await progressOf(journal, summary)), output.width))
    },
  }
}

/** Why an entry has no targets, where there are routes at all, and what else is unusual about it. */
function notesOf(summary: Summary, progress: readonly unknown[], hasRoutes: boolean): string[] {
  const { ignoredBy } = summary
  const isUnrouted = progress.length === 0 && ignoredBy === undefined && hasRoutes
  const note = noteOf(summary)
  return [
    ...(progress.length === 0 && ignoredBy !== undefined ? [ignoredText(ignoredBy)] : []),
    ...(isUnrouted ? ['no route'] : []),
    ...(note === '' ? [] : [note]),
  ]
}
