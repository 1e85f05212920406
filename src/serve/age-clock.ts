import type { Clock } from '../base/time.js'
import type { Store } from '../store/contract.js'
import { shape } from '../store/shape.js'

/** Smaller steps of the wall clock count at once, in milliseconds: clocks are corrected by seconds, and timers come late. */
const STEP_MS = 60_000
/** How long relay has to run before a jump ahead counts, in milliseconds: 24 h, which is how long a forward may wait. */
const HOLD_MS = 86_400_000

/** A jump of the wall clock ahead in which relay did not run. */
type Jump = {
  readonly ms: number
  /** Milliseconds that relay must still run before ages count the jump. */
  readonly left: number
}

/** The saved state of an {@link AgeClock}. `at`: the wall clock when it was saved. */
type State = {
  readonly v: 1
  readonly at: number
  readonly jumps: readonly Jump[]
}

/**
 * The clock that ages are counted by: the wall clock without its jumps ahead in the last 24 hours of relay's running time. A jump
 * is a clock that was set wrong, but also a machine that slept or a relay that was not running. So a wrong clock makes nothing
 * old, and a jump that lasts counts in the end. A jump back counts at once.
 */
export interface AgeClock {
  /** Notices a jump only when it is called: call it every minute or so. */
  readonly now: Clock
  /** Saves the jumps that do not count yet for the next start. @throws RelayError `storage` */
  save(): Promise<void>
}

export interface AgeClockParts {
  readonly store: Pick<Store, 'get' | 'put'>
  readonly clock: Clock
  /** Milliseconds since any moment, by a monotonic clock. Default: `performance.now`. */
  readonly elapsed?: Clock
}

const KEY = 'age-clock'

/** Continues from the state that the profile's last relay saved. @throws RelayError `storage` */
export async function openAgeClock(parts: AgeClockParts): Promise<AgeClock> {
  const { store, clock, elapsed = () => performance.now() } = parts
  let { at: wall, jumps } = parseState(await store.get(KEY)) ?? { at: clock(), jumps: [] }
  let before = elapsed()
  const now = (): number => {
    const [wallBefore, ran] = [wall, elapsed() - before]
    wall = clock()
    before += ran
    jumps = jumps.map(({ ms, left }) => ({ ms, left: left - ran })).filter(({ left }) => left > 0)
    const jump = wall - wallBefore - ran
    if (jump >= STEP_MS) jumps = [...jumps, { ms: jump, left: HOLD_MS }]
    if (jump <= -STEP_MS) jumps = withoutLast(jumps, -jump)
    return wall - jumps.reduce((sum, { ms }) => sum + ms, 0)
  }
  return {
    now,
    async save() {
      now()
      const state: State = { v: 1, at: wall, jumps }
      await store.put(KEY, state)
    },
  }
}

/** A jump back undoes the latest jumps ahead: usually, a wrong clock was corrected. */
function withoutLast(jumps: readonly Jump[], back: number): readonly Jump[] {
  const last = jumps.at(-1)
  if (!last || back <= 0) return jumps
  const rest = jumps.slice(0, -1)
  return last.ms > back ? [...rest, { ...last, ms: last.ms - back }] : withoutLast(rest, back - last.ms)
}

const parseJump = shape<Jump>({ ms: Number.isFinite, left: Number.isFinite })

const parseState = shape<State>({
  v: (value) => value === 1,
  at: Number.isFinite,
  jumps: (value) => Array.isArray(value) && value.every((jump) => parseJump(jump) !== undefined),
})
