/** A list of rows of one height, seen through a viewport. All in pixels. */
export interface Rows {
  readonly count: number
  readonly rowHeight: number
}

export interface Viewport {
  /** How far the top of the rows is above the top of the viewport; negative where it is below. */
  readonly top: number
  readonly height: number
}

/** Rows by index: from `from` up to, not including, `to`. */
export interface RowWindow {
  readonly from: number
  readonly to: number
}

/** Rows rendered above and below the viewport, so that a fast scroll meets no gap. */
const OVERSCAN = 8

/** The rows to render. */
export function windowOf({ count, rowHeight }: Rows, { top, height }: Viewport): RowWindow {
  if (count === 0 || rowHeight <= 0) return { from: 0, to: 0 }
  const first = Math.floor(top / rowHeight) - OVERSCAN
  const last = Math.ceil((top + height) / rowHeight) + OVERSCAN
  const from = clamp(first, 0, count)
  return { from, to: clamp(last, from, count) }
}

/** How far to scroll so that a row is wholly in view; 0 if it is. */
export function scrollToRow(index: number, rowHeight: number, { top, height }: Viewport): number {
  const start = index * rowHeight
  if (start < top) return start - top
  const end = start + rowHeight
  return end > top + height ? end - top - height : 0
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high)
}
