import { printable } from '../../base/printable.js'
import { type DeliveryName, eventName, placeName } from './delivery-line.js'
import { bold, cutLine, dim, type Line, lineWidth, padLine, yellow } from './line.js'
import { cellsLine, leastWidth, type TargetCell } from './target-cell.js'
import { cut, cutStart, pad, textWidth } from './text-width.js'

/** One delivery, as a line of `serve` or `log` shows it. */
export interface Row {
  readonly time: string
  readonly n: number
  readonly delivery: DeliveryName
  /** `duplicate`, `not forwarded`; empty for nothing. */
  readonly note: string
  readonly cells: readonly TargetCell[]
}

/** Lays rows out in columns as wide as the widest row so far, as far as the terminal's width allows. */
export interface Columns {
  /** Widens the columns for a row that is printed later. */
  fit(row: Row): void
  /** `12:04:11  #7  push  octo/demo  main  app ✓ 202 38ms`, in at most `width` columns. */
  line(row: Row, width: number): Line
  /** The names of the columns, above the rows that were fitted. */
  header(width: number): Line
}

/** The columns of a terminal below which the event, the place and the targets do not all fit. */
const MIN_WIDTH = 40
const GAP = '  '
const TARGETS = 'targets'
/** Space between event, place and targets. */
const GAPS = 2 * GAP.length

export function createColumns(): Columns {
  const widths = { time: 0, n: 0, event: 0, place: 0, least: TARGETS.length }
  const widen = (name: keyof typeof widths, width: number): void => {
    widths[name] = Math.max(widths[name], width)
  }
  const fit = (row: Row): void => {
    widen('time', textWidth(row.time))
    widen('n', `#${row.n}`.length)
    widen('event', textWidth(printable(eventName(row.delivery))))
    widen('place', textWidth(printable(placeName(row.delivery))))
    widen('least', leastWidth(row.cells))
  }
  const layout = (width: number) => share(Math.max(width, MIN_WIDTH), widths)
  const line = (start: Line, event: Line, place: Line, end: Line, width: number): Line => {
    const { event: eventWidth, place: placeWidth } = layout(width)
    const names = [start, padLine(event, eventWidth), GAP]
    const isLast = lineWidth(end) === 0
    return cutLine(isLast ? [names, place] : [names, padLine(place, placeWidth), GAP, end], width)
  }
  return {
    fit,
    line(row, width) {
      fit(row)
      const { time, n, delivery } = row
      const { event, place } = layout(width)
      const start = [dim(pad(time, widths.time)), GAP, pad(`#${n}`, widths.n), GAP]
      const used = lineWidth(start) + event + place + GAPS
      const eventText = bold(cutEvent(delivery, event))
      return line(
        start,
        eventText,
        cutStart(printable(placeName(delivery)), place),
        endOf(row, width - used),
        width,
      )
    },
    header(width) {
      const start = dim([pad('time', widths.time), pad('#', widths.n), ''].join(GAP))
      return line(start, dim('event'), dim('repository'), dim(TARGETS), width)
    },
  }
}

/** The cells, and the note where there is room left for it. */
function endOf({ note, cells }: Row, width: number): Line {
  if (cells.length === 0) return yellow(note)
  const room = width - textWidth(note) - GAP.length
  if (note === '' || room < leastWidth(cells)) return cellsLine(cells, width)
  return [cellsLine(cells, room), GAP, yellow(note)]
}

type Widths = Readonly<Record<'time' | 'n' | 'event' | 'place' | 'least', number>>

/**
 * The columns of event and place. Both are as wide as their texts if the targets then still have room for their names and
 * signs; otherwise the targets get that, up to half of the line, and both are cut in proportion.
 */
function share(width: number, wants: Widths): { readonly event: number; readonly place: number } {
  const { event, place, least } = wants
  const room = width - wants.time - wants.n - 2 * GAP.length - GAPS
  const both = room - Math.min(least, Math.floor(room / 2))
  if (event + place <= both) return { event, place }
  // The narrower one is cut only below half of the room.
  const half = Math.floor(both / 2)
  if (place <= half) return { event: both - place, place }
  if (event <= both - half) return { event, place: both - event }
  return { event: both - half, place: half }
}

/** `pull_requ….opened`: the action says more than the end of the event, as long as enough of the event is left to know it. */
function cutEvent(delivery: DeliveryName, width: number): string {
  const whole = printable(eventName(delivery))
  if (textWidth(whole) <= width || delivery.action === null) return cut(whole, width)
  const action = `.${printable(delivery.action)}`
  const room = width - textWidth(action)
  return room >= MIN_EVENT ? cut(printable(delivery.event), room, true) + action : cut(whole, width)
}

const MIN_EVENT = 5
