import { createHash } from 'node:crypto'
import { RelayError } from '../base/errors.js'
import { NO_ROUTES, type ProfileRoute } from '../base/settings.js'
import { type Json, SETTINGS_NOTICE, type Store, type StoreUpdater } from '../store/kv.js'
import { namesVariable } from './variables.js'
import { readRoute } from './route-object.js'
import { parseForward } from './route-text.js'
import type { Route } from './routes.js'
import { Routing, type RoutesGiven } from './routing.js'

/** Prefix of the records. They are as plain or encrypted as those of sources, since an address can hold a password. */
const PREFIX = 'route:'

/** Reads the routes that the profile stores. @throws RelayError `storage` */
export async function readProfileRoutes(store: Store): Promise<readonly ProfileRoute[]> {
  const found = await Promise.all((await store.list(PREFIX)).map((key) => store.get<ProfileRoute>(key)))
  // Further members, such as a command that another program wrote there, are not read, nor headers with variables.
  return found.flatMap((record) => (record ? recordOf(record) : []))
}

/**
 * Stores a route in the profile. It replaces the stored one of its name, or of the same target.
 * @param current the routes in force, whose names it must not have
 * @throws RelayError `usage` for an invalid route, a command, or one whose name or target the settings have; `storage`
 */
export async function addProfileRoute(
  store: StoreUpdater,
  given: ProfileRoute,
  current: RoutesGiven,
): Promise<Route> {
  const route = asUsage(() => readRoute(given, 'The route'))
  const { name, id } = route
  const other = new Routing(current).routes.find(
    (each) => !each.ofProfile && (each.id === id || (name !== undefined && each.name === name)),
  )
  if (other)
    throw new RelayError(
      'usage',
      other.id === id
        ? `The settings have a route to ${route.label} already`
        : `The settings have a route called ${name} already: ${other.label}. Give this one another name`,
    )
  await store.update((records) => records.put(keyOf(route), recordOf(given)), SETTINGS_NOTICE)
  return route
}

/**
 * Removes a route that the profile stores.
 * @param text its name, its target with the match as listings show it, or the route as it was added
 * @returns the route. Undefined if the profile has none of that name, or target
 * @throws RelayError `usage` if several have it; `storage`
 */
export async function removeProfileRoute(store: Store, text: string): Promise<Route | undefined> {
  const { routes } = new Routing({ ...NO_ROUTES, profileRoutes: await readProfileRoutes(store) })
  const written = idOf(text)
  const exact = routes.filter(({ id }) => id === text || id === written)
  const found = exact.length > 0 ? exact : routes.filter(({ label, name }) => name === text || label === text)
  if (found.length > 1)
    throw new RelayError(
      'usage',
      `Several routes of the profile are ${text}. Write the whole route, as it was added`,
    )
  const [route] = found
  if (route) await store.update((records) => records.delete(keyOf(route)), SETTINGS_NOTICE)
  return route
}

/** Converts a route that was written in the short form. @throws RelayError `usage` for an invalid one */
export function profileRouteOf(text: string): ProfileRoute {
  const { name, match, where, target } = asUsage(() => parseForward(text))
  if (target.kind !== 'http') throw new RelayError('usage', 'A route of the profile forwards to an address')
  return recordOf({ name, match: match.text, where: where.map((each) => each.text), forward: target.url })
}

function keyOf({ name, id }: Route): string {
  return PREFIX + (name ?? `=${createHash('sha256').update(id).digest('hex')}`)
}

function idOf(text: string): string | undefined {
  try {
    return parseForward(text).id
  } catch {
    return undefined
  }
}

/**
 * The members that are present: JSON holds no others. Headers that name a variable are left out: anyone who can write the
 * store must not make relay send its environment.
 */
function recordOf(route: ProfileRoute): ProfileRoute & Record<string, Json> {
  const { name, match, where, forward, timeout, ordered, headers = {} } = route
  const literal = Object.fromEntries(Object.entries(headers).filter(([, value]) => !namesVariable(value)))
  return {
    ...(name !== undefined && { name }),
    ...(match !== undefined && { match }),
    ...(where !== undefined && where.length > 0 && { where }),
    ...(timeout !== undefined && { timeout }),
    ...(ordered && { ordered }),
    ...(Object.keys(literal).length > 0 && { headers: literal }),
    forward,
  }
}

/** Calls `read`, whose errors are then of what the user gave and not of the settings. @throws RelayError `usage` */
function asUsage<Value>(read: () => Value): Value {
  try {
    return read()
  } catch (cause) {
    // The parser of the address names the route, too.
    if (cause instanceof RelayError)
      throw new RelayError(
        'usage',
        cause.message
          .replace(/^The route: (?=Invalid route:)/, '')
          .replace(/^The route\.(headers):/, 'The $1 of the route:'),
        { cause },
      )
    throw cause
  }
}
