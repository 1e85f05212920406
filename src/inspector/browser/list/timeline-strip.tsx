import { useRef, useState } from 'hono/jsx/dom'
import type { ListQuery, Timeline } from '../../api.js'
import { describeMinutes, type Span, TimelineChart, TimelineTicks } from '../../view/timeline.js'
import { timelineStore } from '../data/timeline-store.js'
import { go } from '../model/navigation.js'
import { type Cursor, minuteAt, moveCursor, selectedSpan, spanOf, spanQuery } from '../model/span.js'
import { useStore } from '../model/store.js'

/**
 * Deliveries and failures of the last hour by minute. Dragging selects a span; so do the arrow keys, which Shift extends, Enter
 * applies and Escape clears. For screen readers it is a slider over the minutes.
 */
export function TimelineStrip({ query }: { readonly query: ListQuery }) {
  const timeline = useStore(timelineStore)
  if (!timeline) return <div class="strip strip-empty" />
  return <Strip timeline={timeline} query={query} />
}

function Strip({ timeline, query }: { readonly timeline: Timeline; readonly query: ListQuery }) {
  const [cursor, setCursor] = useState<Cursor | null>(null)
  const count = timeline.minutes.length
  const span = cursor ? spanOf(cursor) : selectedSpan(timeline, query)
  const { before: _, since, until, ...others } = query
  const apply = (chosen: Span): void => {
    setCursor(null)
    go({ page: 'list', query: { ...others, ...spanQuery(timeline, chosen) } })
  }
  const clear = (): void => {
    setCursor(null)
    go({ page: 'list', query: others })
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const start = cursor ?? { at: count - 1, anchor: count - 1 }
    const moved = moveCursor(start, event.key, event.shiftKey, count)
    if (moved) setCursor(moved)
    else if (event.key === 'Enter') apply(spanOf(start))
    else if (event.key === 'Escape' && span) clear()
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  const at = cursor?.at ?? span?.to ?? count - 1
  return (
    <div class="strip">
      <div
        class="strip-chart"
        role="slider"
        tabindex={0}
        aria-label="Deliveries of the last hour. Arrow keys choose a minute, Shift extends, Enter applies, Escape clears"
        aria-valuemin={0}
        aria-valuemax={count - 1}
        aria-valuenow={at}
        aria-valuetext={describeMinutes(timeline, span ?? { from: at, to: at })}
        onKeyDown={onKeyDown}
        onBlur={() => setCursor(null)}
        {...useDrag(count, cursor, setCursor, apply)}
      >
        <TimelineChart timeline={timeline} {...(span && { span })} />
      </div>
      <TimelineTicks timeline={timeline} />
      <p class="strip-sums">
        {describeMinutes(timeline, span)}
        {since !== undefined && until !== undefined ? (
          <button type="button" class="link" onClick={clear}>
            all times
          </button>
        ) : null}
      </p>
    </div>
  )
}

/** The listeners with which a pointer drags a span over the chart. */
function useDrag(
  count: number,
  cursor: Cursor | null,
  setCursor: (cursor: Cursor | null) => void,
  apply: (span: Span) => void,
) {
  const chart = useRef<HTMLDivElement>(null)
  const [isDragging, setDragging] = useState(false)
  const minuteOf = (event: PointerEvent): number => {
    const { left = 0, width = 1 } = chart.current?.getBoundingClientRect() ?? {}
    return minuteAt((event.clientX - left) / width, count)
  }
  return {
    ref: chart,
    onPointerDown(event: PointerEvent): void {
      if (event.button !== 0) return
      chart.current?.setPointerCapture(event.pointerId)
      setDragging(true)
      const minute = minuteOf(event)
      setCursor({ at: minute, anchor: minute })
    },
    onPointerMove(event: PointerEvent): void {
      if (isDragging && cursor) setCursor({ ...cursor, at: minuteOf(event) })
    },
    onPointerUp(): void {
      if (isDragging && cursor) apply(spanOf(cursor))
      setDragging(false)
    },
    onPointerCancel(): void {
      setDragging(false)
      setCursor(null)
    },
  }
}
