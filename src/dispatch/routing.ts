import type { Delivery } from '../journal/delivery.js'
import { type Match, matches } from '../journal/match.js'
import type { Route } from './route.js'

/** What of a delivery decides where it goes. */
export type Routed = Pick<Delivery, 'event' | 'action'>

/** How one route takes a delivery, and why, for a person. */
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

/** Tells of every route whether a delivery takes it. */
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
