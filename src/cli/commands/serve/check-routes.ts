import type { RouteSettings } from '../../../base/settings.js'
import { parseExec, parseForward, type Route } from '../../../dispatch/routes.js'
import { matches } from '../../../journal/filter.js'
import { schemeOf } from '../../../codehost/schemes.js'
import { whyNeverSent } from '../../../codehost/events.js'
import type { Context } from '../../context.js'
import type { Origins } from '../../settings/origin.js'
import { whyNotFound } from './check-command.js'

/**
 * What is valid in the routes, and probably not meant: an event that the code host never sends, a command that does not exist,
 * a route that repeats another. Each begins with the place where the route is set.
 */
export function routeWarnings(
  { forward, exec, ignore }: RouteSettings,
  provider: string,
  origins: Origins,
  context: Pick<Context, 'cwd' | 'env'>,
): string[] {
  const place = (name: 'forward' | 'exec' | 'ignore'): string => origins[name]?.text ?? name
  const routes = [
    ...forward.map((text) => ({ at: place('forward'), route: parseForward(text) })),
    ...exec.map((text) => ({ at: place('exec'), route: parseExec(text) })),
  ]
  const found: (string | undefined)[][] = [
    ...routes.map(({ at, route: { match, target } }) => [
      prefixed(at, whyNever(match.text, provider)),
      prefixed(at, target.kind === 'command' ? whyNotFound(target.command, context) : undefined),
    ]),
    ignore.map((text) => prefixed(place('ignore'), whyNever(text, provider))),
    routes.map(({ at, route }, i) => prefixed(at, whyTwice(route, routes.slice(0, i)))),
  ]
  return found.flat().filter((text) => text !== undefined)
}

function whyNever(match: string, provider: string): string | undefined {
  return whyNeverSent(match, provider, schemeOf(provider).events)
}

function prefixed(place: string, text: string | undefined): string | undefined {
  return text === undefined ? undefined : `${place}: ${text}`
}

function whyTwice(route: Route, earlier: readonly { readonly route: Route }[]): string | undefined {
  const { id, label, match } = route
  if (earlier.some((one) => one.route.id === id))
    return `${label} is there twice, and gets each delivery once. Remove one`
  const other = earlier.find((one) => targetOf(one.route) === targetOf(route) && overlap(one.route, route))
  if (!other) return undefined
  return `deliveries that fit both ${match.text} and ${other.route.match.text} go twice to ${label.replace(/^[^=/]*=(?=exec:|https?:)/, '')}. Remove one of the routes`
}

function targetOf({ target }: Route): string {
  return target.kind === 'http' ? target.url : target.command
}

/** Whether one match includes the other. */
function overlap(one: Route, other: Route): boolean {
  return matches(one.match, sampleOf(other)) || matches(other.match, sampleOf(one))
}

/** A delivery that a route matches. `*` as a name is matched only by `*`. */
function sampleOf({ match }: Route): { readonly event: string; readonly action: string | null } {
  const [event = '', action = null] = match.text.split('.', 2)
  return { event, action }
}
