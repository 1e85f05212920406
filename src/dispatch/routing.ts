import type { Delivery } from '../journal/types.js'
import type { RouteSettings } from '../base/settings.js'
import { type Match, matches, parseMatch } from '../journal/filter.js'
import { parseExec, parseForward, type Route } from './route.js'

/** The fields of a delivery that decide its targets. */
export type Routed = Pick<Delivery, 'event' | 'action'>

/** The current routes. */
export interface Routing {
  readonly routes: readonly Route[]
  readonly ignore: readonly Match[]
  /** The ids of the targets a delivery goes to, each once. */
  targetsOf(delivery: Routed): readonly string[]
  /** The match of the ignore rule that keeps it from every target, if there is one. */
  ignoredBy(delivery: Routed): string | undefined
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
    ignoredBy: (delivery) => ignore.find((match) => matches(match, delivery))?.text,
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
  /** The route's label. */
  readonly target: string
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

/** The match that keeps a delivery from every target; undefined if there is none, also where no route takes it. */
export function ignoredBy(ignore: readonly string[], delivery: Routed): string | undefined {
  return ignore.find((text) => matches({ text }, delivery))
}

/** Explains for every route whether a delivery takes it. */
export function explain(
  routes: readonly { readonly label: string; readonly match: string }[],
  ignore: readonly string[],
  delivery: Routed,
): readonly Explanation[] {
  const ignored = ignoredBy(ignore, delivery)
  const { event, action } = delivery
  const name = action === null ? event : `${event}.${action}`
  return routes.map(({ label: target, match: text }) => {
    if (ignored !== undefined) return { target, matched: false, why: `${name} is ignored by ${ignored}` }
    const matched = matches({ text }, delivery)
    return { target, matched, why: `${name} ${matched ? 'matches' : 'does not match'} ${text}` }
  })
}
