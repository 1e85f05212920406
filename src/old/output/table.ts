import { printable } from '../../base/printable.js'
import { pad, textWidth } from './text-width.js'

/** Aligns the cells in columns, two spaces apart. */
export function table(rows: readonly (readonly string[])[]): string[] {
  // A cell from outside is escaped before it is measured.
  const cells = rows.map((row) => row.map(printable))
  const widths: number[] = []
  for (const row of cells)
    for (const [column, cell] of row.entries())
      widths[column] = Math.max(widths[column] ?? 0, textWidth(cell))
  return cells.map((row) =>
    row
      .map((cell, column) => pad(cell, widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
