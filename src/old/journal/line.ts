import { printable } from '../../base/printable.js'
import type { Summary } from '../../journal/types.js'
import { editedFrom } from '../../journal/types.js'
import { describeAttempt } from '../output/attempt-line.js'
import { eventName, placeName } from '../output/delivery-line.js'
import { bold, dim, type Line, red, yellow } from '../output/line.js'
import { localTime } from '../output/time.js'
import { pad, textWidth } from '../output/text-width.js'
import { ignoredText } from '../../journal/types.js'
import type { TargetProgress } from './progress.js'

/** Formats entries in columns as wide as the widest entry so far. */
export interface Columns {
  /** Widens the columns for an entry that is printed later. */
  fit(summary: Summary): void
  /** `#7  2026-01-31 12:04:11  push  octo/demo  → http://localhost:3000 202 38ms`; `-` for an empty column. */
  line(summary: Summary, progress: readonly TargetProgress[]): Line
}

export function createColumns(): Columns {
  const widths = [0, 0, 0, 0]
  const fit = (summary: Summary): readonly string[] => {
    const cells = cellsOf(summary)
    for (const [i, cell] of cells.entries()) widths[i] = Math.max(widths[i] ?? 0, textWidth(cell))
    return cells
  }
  return {
    fit,
    line(summary, progress) {
      const cells = fit(summary).map((cell, i) => pad(cell, widths[i] ?? 0))
      const [number = '', time = '', event = '', place = ''] = cells
      const note = noteOf(summary)
      const end = note === '' ? [] : ['  ', yellow(note)]
      return [
        number,
        '  ',
        dim(time),
        '  ',
        bold(event),
        `  ${place}  `,
        describeProgress(progress, summary),
        ...end,
      ]
    },
  }
}

/** `edited copy of #3, 1 duplicate`; empty for a usual entry. */
export function noteOf(summary: Pick<Summary, 'duplicates' | 'headers'>): string {
  const from = editedFrom(summary)
  const { duplicates: count } = summary
  return [
    ...(from === undefined ? [] : [`edited copy of #${from}`]),
    ...(count === 0 ? [] : [`${count} duplicate${count === 1 ? '' : 's'}`]),
  ].join(', ')
}

/** Escaped, since their lengths are the widths of the columns. */
function cellsOf(summary: Summary): readonly string[] {
  const { n, receivedAt } = summary
  return [`#${n}`, localTime(receivedAt), eventName(summary), placeName(summary) || '-'].map(printable)
}

/** Shows the last answer of a single target, and counts of several. */
function describeProgress(progress: readonly TargetProgress[], { ignoredBy }: Summary): Line {
  const [only] = progress
  if (!only) return ignoredBy === undefined ? '-' : ignoredText(ignoredBy)
  if (progress.length === 1) return describeTarget(only)
  const of = (state: string): number => progress.filter(({ forward }) => forward.status === state).length
  const [failed, waiting, total] = [of('failed'), of('waiting'), progress.length]
  if (failed + waiting === 0) return `→ ${total} targets`
  return [
    ...(failed > 0 ? [red(`${failed} of ${total} failed`)] : []),
    ...(failed > 0 && waiting > 0 ? [', '] : []),
    ...(waiting > 0 ? [yellow(`${waiting} of ${total} waiting`)] : []),
  ]
}

function describeTarget({ label, forward: { status: state }, attempts }: TargetProgress): Line {
  const last = attempts.at(-1)
  const text = `→ ${label}${last ? ` ${describeAttempt(last)}` : ''}`
  if (state === 'succeeded') return text
  return [text, ' ', state === 'failed' ? red('failed') : yellow('waiting')]
}
