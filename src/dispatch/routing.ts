import type { ReadRoutes, RouteDefinition } from '../base/settings.js'
import { type Match, matches, parseMatch } from '../journal/filter.js'
import type { VerifiedEvent } from '../journal/types.js'
import { readRoute } from './route-object.js'
import { parseExec, parseForward } from './route-text.js'
import { checkReplies, readSourceReply, withReply, type Route, type Routed, routesFor } from './routes.js'

/** Routes as the settings have them. */
export type RoutesGiven = ReadRoutes | readonly RouteDefinition[]

/** The current routes. */
export class Routing {
  routes: readonly Route[] = []
  ignore: readonly Match[] = []

  /** @throws RelayError `settings` naming the invalid route, or `usage` naming the invalid match */
  constructor(given: RoutesGiven) {
    this.replace(given)
  }

  /** Ids of the targets of a delivery, each once. */
  targetsOf(delivery: Routed): readonly string[] {
    return [...new Set(routesFor(this.routes, this.ignore, delivery).map(({ id }) => id))]
  }

  /** The ignore rule that matches a delivery, if there is one. */
  ignoredBy(delivery: VerifiedEvent): string | undefined {
    return this.ignore.find((match) => matches(match, delivery))?.text
  }

  /** Replaces all routes. @throws RelayError as the constructor, without a change */
  replace(given: RoutesGiven): void {
    const { ignore, ...rules } = settingsOf(given)
    const routes = readRoutes(rules)
    this.ignore = ignore.map((text) => parseMatch(text))
    this.routes = routes
  }
}

function settingsOf(given: RoutesGiven): ReadRoutes {
  return isList(given) ? { forward: [], exec: [], ignore: [], routes: given } : given
}

function isList(given: RoutesGiven): given is readonly RouteDefinition[] {
  return Array.isArray(given)
}

/** Reads all routes of the settings, whatever their form. @throws RelayError `settings` naming the invalid route */
export function readRoutes(given: Omit<ReadRoutes, 'ignore'>): readonly Route[] {
  const {
    forward,
    exec,
    routes = [],
    profileRoutes = [],
    timeout,
    reply = [],
    folderForward = false,
    folderRoutes = false,
  } = given
  const of = (isOfFolder: boolean, route: Route): Route => ({
    ...(timeout !== undefined && { timeout }),
    ...route,
    ...(isOfFolder && { ofFolder: true }),
  })
  const set = [
    ...forward.map((text) => of(folderForward, parseForward(text))),
    ...exec.map((text) => of(false, parseExec(text))),
    ...routes.map((definition, i) => {
      const route = readRoute(definition, `routes[${i}]`)
      return of(folderRoutes && route.target.kind === 'http', route)
    }),
  ]
  const stored = profileRoutes.map((definition) => ({
    ...of(false, readRoute(definition, 'A route of the profile')),
    ofProfile: true,
  }))
  const isFree = ({ id, name }: Route): boolean =>
    set.every((each) => each.id !== id && (name === undefined || each.name !== name))
  const all = reply
    .map(readSourceReply)
    .reduce<readonly Route[]>(withReply, [...set, ...stored.filter(isFree)])
  checkReplies(all)
  return all
}
