import type { Timeline } from '../api.js'
import { useApi } from './client.js'
import { counted, minuteTime } from './format.js'

/** Units of the drawing: a minute is 10 wide; received deliveries are above the base line, failed ones below. */
const [MINUTE, UP, DOWN] = [10, 36, 14]

/** Last values, shown until new ones are read, so that the strip does not vanish when the user comes back. */
let last: Timeline['minutes'] = []

/** The last hour by minute. Its height is reserved while it loads. */
export function TimelineStrip() {
  const { value } = useApi<Timeline>('timeline', ({ type }) => type !== 'state')
  last = value?.minutes ?? last
  const [oldest] = last
  const most = Math.max(1, ...last.map(({ received }) => received))
  const worst = Math.max(1, ...last.map(({ failed, refused }) => failed + refused))
  return (
    <div>
      <svg class="chart" viewBox={`0 0 ${60 * MINUTE} ${UP + DOWN}`} preserveAspectRatio="none" aria-hidden>
        <rect class="chart-base" y={UP} width={60 * MINUTE} height="0.6" />
        {last.map(({ received, failed, refused }, i) => {
          const [x, width] = [i * MINUTE + 1.5, MINUTE - 3]
          const up = heightOf(received / most, UP - 2)
          const down = heightOf((failed + refused) / worst, DOWN - 2)
          return [
            up > 0 && <rect class="chart-received" x={x} y={UP - up} width={width} height={up} />,
            down > 0 && <rect class="chart-failed" x={x} y={UP + 1} width={width} height={down} />,
          ]
        })}
      </svg>
      <p class="chart-line">
        <span aria-hidden="true">{oldest ? minuteTime(oldest.at) : ' '}</span>
        <span>{oldest ? describe(last) : ''}</span>
        <span aria-hidden="true">{oldest ? 'now' : ''}</span>
      </p>
    </div>
  )
}

/** Scales by the square root, so that a quiet minute is visible next to a busy one. */
function heightOf(part: number, height: number): number {
  return part === 0 ? 0 : Math.max(2, Math.round(height * Math.sqrt(part) * 10) / 10)
}

/** Maximum of deliveries that the journal counts in a minute. */
const MAX_COUNTED = 10_000

/** `Last hour: 120 received, 3 failed, 1 refused` */
function describe(minutes: Timeline['minutes']): string {
  const sum = (name: 'received' | 'failed' | 'refused'): number =>
    minutes.reduce((total, minute) => total + minute[name], 0)
  const received = counted(sum('received'), 'received', 'received')
  const refused = sum('refused') > 0 ? `, ${sum('refused')} refused` : ''
  const atLeast = minutes.some((minute) => minute.received >= MAX_COUNTED) ? 'at least ' : ''
  return `Last hour: ${atLeast}${received}, ${sum('failed')} failed${refused}`
}
