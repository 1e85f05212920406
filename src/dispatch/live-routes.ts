import type { ForwardCounts } from '../journal/types.js'
import type { TargetStatus } from './dispatcher.js'
import { labelOf, type Routing } from './routes.js'

/** A route, or a target that is no longer configured and still has deliveries waiting. Contains no password. */
export interface LiveRoute extends ForwardCounts {
  readonly match: string
  readonly label: string
  /** What the user calls the target. */
  readonly name?: string | undefined
  /** `idle`: no relay runs that would forward to it. */
  readonly state: TargetStatus['state'] | 'idle'
  /** When it went down, or was removed. Milliseconds. */
  readonly since?: number | undefined
  /** When a target that is down is attempted next. Milliseconds. */
  readonly nextProbeAt?: number | undefined
}

export interface LiveRoutes {
  readonly routes: readonly LiveRoute[]
  /** The matches of deliveries that go nowhere. */
  readonly ignore: readonly string[]
}

/** The routes, each with the state of its target and the numbers of its deliveries in the journal. */
export function liveRoutes(
  { routes, ignore }: Pick<Routing, 'routes' | 'ignore'>,
  targets: readonly TargetStatus[],
  counts: ReadonlyMap<string, ForwardCounts>,
): LiveRoutes {
  const status = new Map(targets.map((target) => [target.id, target]))
  const names = new Map(routes.map(({ id, name }) => [id, name]))
  const liveRoute = (id: string): LiveRoute => {
    const { state = 'idle', since, nextProbeAt } = status.get(id) ?? {}
    const { waiting = 0, succeeded = 0, failed = 0 } = counts.get(id) ?? {}
    const match = id.slice(0, id.indexOf('='))
    return {
      match,
      label: labelOf(id),
      name: names.get(id),
      state,
      since,
      nextProbeAt,
      waiting,
      succeeded,
      failed,
    }
  }
  return {
    routes: [...new Set([...names.keys(), ...status.keys()])].map(liveRoute),
    ignore: ignore.map(({ text }) => text),
  }
}
