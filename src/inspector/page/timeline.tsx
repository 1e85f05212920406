import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Timeline as Hour } from '../api.js'
import { getJson, onLive } from './client.js'
import { counted, minuteTime } from './format.js'

type Minute = Hour['minutes'][number]

/** The drawing's own units: a minute is 10 wide; what arrived stands on the base line, what failed hangs below. */
const [MINUTE, UP, DOWN] = [10, 36, 14]

/** While something arrives the strip is read again this often; and while nothing does, so that it moves on. */
const BUSY_MS = 1000
const IDLE_MS = 30_000

const hour = signal<Hour | null>(null)

/** The last hour by minute. Its height is reserved before it is there. */
export function Timeline() {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isSoon = false
    const schedule = (soon: boolean): void => {
      if (timer !== undefined && (isSoon || !soon)) return
      clearTimeout(timer)
      isSoon = soon
      timer = setTimeout(() => void read(), soon ? BUSY_MS : IDLE_MS)
    }
    const read = async (): Promise<void> => {
      timer = undefined
      // Without an answer the strip stays as it was; the banner says that relay is away.
      hour.value = await getJson<Hour>('timeline').catch(() => hour.value)
      schedule(false)
    }
    const stop = onLive(({ type }) => {
      if (type !== 'state') schedule(true)
    })
    void read()
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [])
  const minutes = hour.value?.minutes ?? []
  const [oldest] = minutes
  return (
    <div>
      <svg
        class="chart"
        viewBox={`0 0 ${60 * MINUTE} ${UP + DOWN}`}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        <rect class="chart-base" y={UP} width={60 * MINUTE} height="0.6" />
        <Bars minutes={minutes} />
      </svg>
      <p class="chart-line">
        <span aria-hidden="true">{oldest ? minuteTime(oldest.at) : ' '}</span>
        <span>{oldest ? describe(minutes) : ''}</span>
        <span aria-hidden="true">{oldest ? 'now' : ''}</span>
      </p>
    </div>
  )
}

function Bars({ minutes }: { readonly minutes: readonly Minute[] }) {
  const most = Math.max(1, ...minutes.map(({ received }) => received))
  const worst = Math.max(1, ...minutes.map(({ failed, refused }) => failed + refused))
  return (
    <>
      {minutes.map(({ received, failed, refused }, i) => {
        const [up, down] = [heightOf(received / most, UP - 2), heightOf((failed + refused) / worst, DOWN - 2)]
        const x = i * MINUTE + 1.5
        return (
          <>
            {up > 0 ? <rect class="chart-received" x={x} y={UP - up} width={MINUTE - 3} height={up} /> : null}
            {down > 0 ? (
              <rect class="chart-failed" x={x} y={UP + 1} width={MINUTE - 3} height={down} />
            ) : null}
          </>
        )
      })}
    </>
  )
}

/** In proportion to the square root, so that a quiet minute is seen next to a busy one. */
function heightOf(part: number, height: number): number {
  return part === 0 ? 0 : Math.max(2, Math.round(height * Math.sqrt(part) * 10) / 10)
}

/** `Last hour: 120 received, 3 failed, 1 refused` */
function describe(minutes: readonly Minute[]): string {
  const sum = (of: (minute: Minute) => number): number => minutes.reduce((total, each) => total + of(each), 0)
  const [failed, refused] = [sum((each) => each.failed), sum((each) => each.refused)]
  const received = counted(
    sum((each) => each.received),
    'received',
    'received',
  )
  return `Last hour: ${[received, `${failed} failed`, ...(refused > 0 ? [`${refused} refused`] : [])].join(', ')}`
}
