import type { AttemptEvent } from '../../../dispatch/dispatcher.js'
import type { TargetStatus } from '../../../dispatch/dispatcher.js'
import type { Outcome } from '../../../journal/types.js'
import type { Block, Feed } from '../../output/feed.js'
import { dim, green, type Line, red, wrapLine, yellow } from '../../output/line.js'
import { TIMED_INDENT } from '../../output/output.js'
import { timeOfDay } from '../../output/time.js'

/** The lines about targets: one when a target goes down, and one when it is back, with how many deliveries that forwarded. */
export interface TargetLines {
  /** What it is if not up. */
  readonly stateOf: (id: string) => TargetStatus['state'] | undefined
  /** True when the attempt sent what had waited for a target that is back, and is counted on its line. */
  attempted(event: AttemptEvent): boolean
  changed(status: TargetStatus, now: number): void
}

/** What waited for a target when it came back. */
interface Backlog {
  readonly waited: number
  succeeded: number
  failed: number
  readonly draw: (width: number) => readonly Line[]
  readonly block: Block
}

interface LastAttempt {
  readonly outcome: Outcome
  readonly error: string | null
}

export function createTargetLines(feed: Pick<Feed, 'add'>, nameOf: (id: string) => string): TargetLines {
  const states = new Map<string, TargetStatus['state']>()
  const last = new Map<string, LastAttempt>()
  const backlogs = new Map<string, Backlog>()

  const end = (id: string): void => {
    const backlog = backlogs.get(id)
    backlogs.delete(id)
    if (backlog && !backlog.block.redraw({ isFinal: true })) feed.add(backlog.draw, true)
  }
  const add = (line: () => Line, isFinal: boolean): Pick<Backlog, 'draw' | 'block'> => {
    const draw = (width: number): readonly Line[] => wrapLine(line(), width, TIMED_INDENT)
    return { draw, block: feed.add(draw, isFinal) }
  }
  const returned = ({ id, queued }: TargetStatus, now: number): void => {
    // The delivery that was answered first is no longer queued, and is recorded after this, unless it must be sent again.
    const isProbeToCome = states.get(id) === 'down' && last.get(id)?.outcome !== 'retry'
    const waited = queued + (isProbeToCome ? 1 : 0)
    if (waited === 0)
      return void add(() => backLine(nameOf(id), now, { waited, succeeded: 0, failed: 0 }), true)
    const counts = { waited, succeeded: 0, failed: 0 }
    const backlog = Object.assign(
      counts,
      add(() => backLine(nameOf(id), now, counts), false),
    )
    backlogs.set(id, backlog)
  }
  return {
    stateOf: (id) => states.get(id),
    attempted({ route: { id }, attempt: { outcome, error }, forward: { status } }) {
      last.set(id, { outcome, error })
      const backlog = backlogs.get(id)
      if (!backlog || status === 'waiting') return false
      backlog[status] += 1
      if (backlog.succeeded + backlog.failed === backlog.waited) end(id)
      else backlog.block.redraw({ isFinal: false })
      return true
    },
    changed(status, now) {
      const { id, state } = status
      end(id)
      // The log says what passes from one relay to another.
      const before = states.get(id) ?? 'elsewhere'
      const passes = state === 'elsewhere' || (state === 'up' && before === 'elsewhere')
      if (state === 'up' && !passes) returned(status, now)
      else if (!passes) {
        const line = lostLine(nameOf(id), status, last.get(id)?.error ?? undefined, now)
        add(() => line, true)
      }
      if (state === 'up') states.delete(id)
      else states.set(id, state)
    },
  }
}

/** `12:04:11  app is back: forwarded 3 deliveries that waited, 1 failed` */
function backLine(
  name: string,
  now: number,
  { waited, succeeded, failed }: Pick<Backlog, 'waited' | 'succeeded' | 'failed'>,
): Line {
  const start = [dim(timeOfDay(now)), `  ${name} `, green('is back')]
  if (waited === 0) return start
  const done = succeeded + failed
  const failures = failed === 0 ? [] : [', ', red(`${failed} failed`)]
  if (done < waited) return [...start, `: forwarded ${succeeded} of ${waited} that waited`, ...failures]
  return [
    ...start,
    `: forwarded ${succeeded === 1 ? '1 delivery' : `${succeeded} deliveries`} that waited`,
    ...failures,
  ]
}

/** `12:04:11  app is down: connection refused; 3 waiting, next try in 2s` */
function lostLine(
  name: string,
  { label, state, queued, nextProbeAt }: TargetStatus,
  error: string | undefined,
  now: number,
): Line {
  const start = [dim(timeOfDay(now)), `  ${name} `]
  if (state === 'gone') {
    const full = label === name ? '' : ` (${label})`
    return [...start, yellow('is no longer configured'), `${full}: ${queued} waiting, 24 h at most`]
  }
  const seconds = nextProbeAt === undefined ? undefined : Math.max(1, Math.round((nextProbeAt - now) / 1000))
  const next = seconds === undefined ? '' : `, next try in ${seconds}s`
  return [...start, red('is down'), `: ${error === undefined ? '' : `${error}; `}${queued} waiting${next}`]
}

/** A change of a target for a program. */
export function targetObject(status: TargetStatus): Record<string, unknown> {
  const { label, state, queued, since, nextProbeAt } = status
  const time = (at: number | undefined): string | null =>
    at === undefined ? null : new Date(at).toISOString()
  return { type: 'target', target: label, state, queued, since: time(since), nextTryAt: time(nextProbeAt) }
}
