import type { Timeline } from '../api.js'
import { counted, minuteTime } from './format.js'

type Minute = Timeline['minutes'][number]

/** The drawing's own units: a minute is 10 wide; bars of what arrived stand on the base line, those of failures hang below. */
const MINUTE = 10
const UP = 36
const DOWN = 14
const HEIGHT = UP + DOWN

/** Minutes of the strip by index, both included. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** A bar for each minute of the last hour, and the span that is selected. */
export function TimelineChart({
  timeline: { minutes },
  span,
}: {
  readonly timeline: Timeline
  readonly span?: Span
}) {
  const most = Math.max(1, ...minutes.map(({ received }) => received))
  const mostFailed = Math.max(1, ...minutes.map(bad))
  return (
    <svg
      class="chart"
      viewBox={`0 0 ${minutes.length * MINUTE} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
      focusable="false"
    >
      {span ? (
        <rect
          class="chart-span"
          x={span.from * MINUTE}
          y="0"
          width={(span.to - span.from + 1) * MINUTE}
          height={HEIGHT}
        />
      ) : null}
      <rect class="chart-base" x="0" y={UP} width={minutes.length * MINUTE} height="0.6" />
      {minutes.map((minute, i) => (
        <Bars minute={minute} x={i * MINUTE} most={most} mostFailed={mostFailed} />
      ))}
    </svg>
  )
}

interface BarsProps {
  readonly minute: Minute
  readonly x: number
  readonly most: number
  readonly mostFailed: number
}

function Bars({ minute, x, most, mostFailed }: BarsProps) {
  const up = barHeight(minute.received, most, UP - 2)
  const down = barHeight(bad(minute), mostFailed, DOWN - 2)
  return (
    <>
      {up === 0 ? null : (
        <rect class="chart-received" x={x + 1.5} y={UP - up} width={MINUTE - 3} height={up} />
      )}
      {down === 0 ? null : (
        <rect class="chart-failed" x={x + 1.5} y={UP + 1} width={MINUTE - 3} height={down} />
      )}
    </>
  )
}

/** In proportion to the square root, so that a quiet minute is seen next to a busy one. */
function barHeight(count: number, most: number, height: number): number {
  return count === 0 ? 0 : Math.max(2, Math.round(height * Math.sqrt(count / most) * 10) / 10)
}

/** What went wrong in a minute: forwards that failed and requests that were refused. */
function bad({ failed, refused }: Minute): number {
  return failed + refused
}

/** The sums of a span, or of the whole hour: `14:02 to 14:10: 120 received, 3 failed, 1 refused`. */
export function describeMinutes({ minutes }: Timeline, span?: Span): string {
  const { from, to } = span ?? { from: 0, to: minutes.length - 1 }
  const chosen = minutes.slice(from, to + 1)
  const sum = (of: (minute: Minute) => number): number => chosen.reduce((total, each) => total + of(each), 0)
  const received = counted(
    sum((each) => each.received),
    'received',
    'received',
  )
  const failed = sum((each) => each.failed)
  const refused = sum((each) => each.refused)
  const sums = [received, `${failed} failed`, ...(refused > 0 ? [`${refused} refused`] : [])].join(', ')
  return span ? `${describeSpanTime(chosen)}: ${sums}` : `Last hour: ${sums}`
}

function describeSpanTime(chosen: readonly Minute[]): string {
  const [first, last] = [chosen[0], chosen.at(-1)]
  if (!first || !last) return ''
  return first === last ? minuteTime(first.at) : `${minuteTime(first.at)} to ${minuteTime(last.at + 60_000)}`
}

/** The times under the strip: every quarter of an hour. */
export function TimelineTicks({ timeline: { minutes } }: { readonly timeline: Timeline }) {
  const ticks = minutes.filter((_, i) => i % 15 === 0)
  return (
    <div class="ticks" aria-hidden="true">
      {ticks.map(({ at }) => (
        <span>{minuteTime(at)}</span>
      ))}
      <span>now</span>
    </div>
  )
}
