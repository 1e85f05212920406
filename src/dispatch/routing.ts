import type { Delivery } from '../journal/delivery.js'
import type { RouteSettings } from '../base/settings.js'
import { type Match, matches, parseMatch } from '../journal/match.js'
import { parseExec, parseForward, type Route } from './route.js'

/** The fields of a delivery that decide its targets. */
export type Routed = Pick<Delivery, 'event' | 'action'>

/** The current routes. */
export interface Routing {
  readonly routes: readonly Route[]
  readonly ignore: readonly Match[]
  /** The ids of the targets a delivery goes to, each once. */
  targetsOf(delivery: Routed): readonly string[]
  /** @throws RelayError `settings`, and nothing is changed. */
  replace(settings: RouteSettings): void
}

/** @throws RelayError `settings` naming the route, or `usage` naming the match, that cannot be read. */
export function createRouting(settings: RouteSettings): Routing {
  let { routes, ignore } = readRouting(settings)
  return {
    get routes() {
      return routes
    },
    get ignore() {
      return ignore
    },
    targetsOf: (delivery) => [...new Set(routesFor(routes, ignore, delivery).map(({ id }) => id))],
    replace(next) {
      ;({ routes, ignore } = readRouting(next))
    },
  }
}

function readRouting({ forward, exec, ignore }: RouteSettings): Pick<Routing, 'routes' | 'ignore'> {
  return { routes: [...forward.map(parseForward), ...exec.map(parseExec)], ignore: ignore.map(parseMatch) }
}

/** Whether a route takes a delivery, and why, for a person. */
export interface Explanation {
  readonly route: Route
  readonly matched: boolean
  readonly why: string
}

/** The routes that a delivery takes: every one that matches, unless the delivery is ignored. */
export function routesFor(
  routes: readonly Route[],
  ignore: readonly Match[],
  delivery: Routed,
): readonly Route[] {
  if (ignore.some((match) => matches(match, delivery))) return []
  return routes.filter(({ match }) => matches(match, delivery))
}

/** Explains for every route whether a delivery takes it. */
export function explain(
  routes: readonly Route[],
  ignore: readonly Match[],
  delivery: Routed,
): readonly Explanation[] {
  const ignored = ignore.find((match) => matches(match, delivery))
  const { event, action } = delivery
  const name = action === null ? event : `${event}.${action}`
  return routes.map((route) => {
    const { text } = route.match
    if (ignored) return { route, matched: false, why: `${name} is ignored by ${ignored.text}` }
    const matched = matches(route.match, delivery)
    return { route, matched, why: `${name} ${matched ? 'matches' : 'does not match'} ${text}` }
  })
}
