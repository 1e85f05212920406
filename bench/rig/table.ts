import type { Row } from './row.js'

const HEAD: Row = {
  what: '',
  relay: 'relay',
  baseline: 'compared with',
  other: 'its value',
  figure: 'median of the rounds',
  spread: 'spread',
}

const COLUMNS = ['what', 'relay', 'baseline', 'other', 'figure', 'spread'] as const

/** The rows as an aligned Markdown table. */
export function table(rows: readonly Row[]): string {
  const all = [HEAD, ...rows]
  const widths = COLUMNS.map((column) => Math.max(3, ...all.map((row) => row[column].length)))
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`
  const [head = '', ...body] = all.map((row) => line(COLUMNS.map((column) => row[column])))
  return [head, line(widths.map((width) => '-'.repeat(width))), ...body].join('\n')
}
