import type { Summary } from '../../journal/delivery.js'
import { attemptWords } from '../attempt-line.js'
import { eventName, placeName } from '../delivery-line.js'
import { type Paint, printable } from '../output.js'
import { localTime } from './instant.js'
import type { TargetProgress } from './progress.js'

/** Prints entries in columns that do not move: as wide as the widest so far. */
export interface Columns {
  /** Makes room for an entry that is still to come. */
  fit(summary: Summary): void
  /** `#7  2026-01-31 12:04:11  push  octo/demo  → http://localhost:3000 202 38ms`; `-` for what there is not. */
  line(summary: Summary, progress: readonly TargetProgress[]): string
}

export function createColumns(paint: Paint): Columns {
  const widths = [0, 0, 0, 0]
  const fit = (summary: Summary): readonly string[] => {
    const cells = cellsOf(summary)
    for (const [i, cell] of cells.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length)
    return cells
  }
  return {
    fit,
    line(summary, progress) {
      const [number = '', time = '', event = '', place = ''] = fit(summary).map((cell, i) =>
        cell.padEnd(widths[i] ?? 0),
      )
      const again = summary.duplicates === 0 ? [] : [paint.yellow(duplicates(summary.duplicates))]
      return [number, paint.dim(time), paint.bold(event), place, handOnWords(progress, paint), ...again].join(
        '  ',
      )
    },
  }
}

/** `1 duplicate` */
export function duplicates(count: number): string {
  return `${count} duplicate${count === 1 ? '' : 's'}`
}

function cellsOf(summary: Summary): readonly string[] {
  return [`#${summary.n}`, localTime(summary.receivedAt), eventName(summary), placeName(summary) || '-']
}

/** One target is told with its last answer, several are counted. */
function handOnWords(progress: readonly TargetProgress[], paint: Paint): string {
  const [only] = progress
  if (!only) return '-'
  if (progress.length === 1) return oneTarget(only, paint)
  const of = (state: string): number => progress.filter(({ handOn }) => handOn.state === state).length
  const [failed, waiting, total] = [of('failed'), of('waiting'), progress.length]
  const parts = [
    ...(failed > 0 ? [paint.red(`${failed} of ${total} failed`)] : []),
    ...(waiting > 0 ? [paint.yellow(`${waiting} of ${total} waiting`)] : []),
  ]
  return parts.join(', ') || `→ ${total} targets`
}

function oneTarget({ label, handOn: { state }, attempts }: TargetProgress, paint: Paint): string {
  const last = attempts.at(-1)
  const words = `→ ${printable(label)}${last ? ` ${attemptWords(last)}` : ''}`
  if (state === 'succeeded') return words
  return `${words} ${state === 'failed' ? paint.red('failed') : paint.yellow('waiting')}`
}
