import type { ListQuery, Timeline } from '../../api.js'
import type { Span } from '../../view/timeline.js'

/** Where the keyboard is on the strip: a minute, and where the span that Shift extends began. */
export interface Cursor {
  readonly at: number
  readonly anchor: number
}

/** A cursor after a key, or undefined if the key means nothing here. Minutes are 0 to `count` - 1. */
export function moveCursor(
  cursor: Cursor,
  key: string,
  isExtending: boolean,
  count: number,
): Cursor | undefined {
  const moves: Record<string, number> = {
    ArrowLeft: cursor.at - 1,
    ArrowRight: cursor.at + 1,
    PageUp: cursor.at - 10,
    PageDown: cursor.at + 10,
    Home: 0,
    End: count - 1,
  }
  const moved = moves[key]
  if (moved === undefined) return undefined
  const at = Math.min(Math.max(moved, 0), count - 1)
  return { at, anchor: isExtending ? cursor.anchor : at }
}

export function spanOf({ at, anchor }: Cursor): Span {
  return { from: Math.min(at, anchor), to: Math.max(at, anchor) }
}

/** The minute under a point of the strip; `fraction` is 0 at its left edge and 1 at its right. */
export function minuteAt(fraction: number, count: number): number {
  return Math.min(Math.max(Math.floor(fraction * count), 0), count - 1)
}

/** The filters that select a span. The instants are whole minutes, so that the address stays short. */
export function spanQuery({ minutes }: Timeline, { from, to }: Span): Pick<ListQuery, 'since' | 'until'> {
  const [first, last] = [minutes[from], minutes[to]]
  if (!first || !last) return {}
  return { since: isoMinute(first.at), until: isoMinute(last.at + 60_000) }
}

/** The span that the filters select, as far as it is on the strip. */
export function selectedSpan({ minutes }: Timeline, { since, until }: ListQuery): Span | undefined {
  const [start, end] = [Date.parse(since ?? ''), Date.parse(until ?? '')]
  if (Number.isNaN(start) || Number.isNaN(end)) return undefined
  const from = minutes.findIndex(({ at }) => at + 60_000 > start)
  const to = minutes.findLastIndex(({ at }) => at < end)
  return from === -1 || to < from ? undefined : { from, to }
}

function isoMinute(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16)}Z`
}
