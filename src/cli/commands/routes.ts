import { isCodeHost } from '../../base/settings.js'
import {
  explain,
  ignoredBy,
  type LiveRoute,
  liveRoutes,
  type LiveRoutes,
  Routing,
} from '../../dispatch/routes.js'
import { Journal } from '../../journal/journal.js'
import type { Flags, Shell } from '../command.js'
import { callInstance } from '../instance-client.js'
import { findEntry, openJournal } from '../journal.js'
import { eventName } from '../output/deliveries.js'
import type { Output } from '../output/output.js'
import { table } from '../output/text.js'
import { spokenTime, timeOfDay } from '../output/time.js'
import { type Attached, attach, commandFor, openData, routeSettings } from '../profile.js'

/** Runs `relay routes`. */
export async function runRoutes(shell: Shell, flags: Flags): Promise<void> {
  const { out } = shell
  const attached = await attach(shell, flags)
  const live = await routesOfInstance(attached, shell)
  const { routes, ignore } = live ?? (await routesOfSettings(attached))
  if (shell.json) {
    for (const route of routes) out.object(routeObject(route))
    for (const match of ignore) out.object({ type: 'ignore', match })
    return
  }
  if (!live) out.say('No relay is running for this profile: these are the routes of the settings')
  if (routes.length > 0) print(routes, out)
  else
    out.say(
      `There are no routes. Start one with ${commandFor(attached, 'serve --forward 3000')}, or set forward in relay.json`,
    )
  if (ignore.length > 0) out.result(`ignored: ${ignore.join(', ')}`)
}

/** The routes of the profile's instance; undefined if none runs. */
async function routesOfInstance({ instance }: Attached, { signal }: Shell): Promise<LiveRoutes | undefined> {
  return instance && (await callInstance(instance, 'routes', {}, { signal }))
}

/** The routes of the settings, with the counts of the journal if there is one. */
async function routesOfSettings(attached: Attached): Promise<LiveRoutes> {
  await using data = await openData(attached)
  const counts = await (data && new Journal(data.sql).counts())
  return liveRoutes(new Routing(routeSettings(attached.values)), [], counts ?? new Map())
}

/** The target is last: on a narrow terminal its address, which is never cut, goes on a line of its own. */
const HEADINGS = ['forwarded', 'failed', 'waiting', 'state', 'target']

function print(routes: readonly LiveRoute[], out: Output): void {
  const rows = routes.map((route) => [
    ...[route.succeeded, route.failed, route.waiting].map(String),
    describeState(route),
    route.name === undefined ? route.label : `${route.name} ${route.label}`,
  ])
  for (const line of table([HEADINGS, ...rows])) out.result(line)
}

function describeState({ state, since, nextProbeAt }: LiveRoute): string {
  if (state === 'gone') return 'not configured'
  if (state === 'elsewhere') return 'forwarded by another relay'
  if (state !== 'down') return state
  if (nextProbeAt !== undefined) return `down, next try ${timeOfDay(nextProbeAt)}`
  return since === undefined ? 'down' : `down since ${spokenTime(since, Date.now())}`
}

function routeObject({ label, since, nextProbeAt, ...route }: LiveRoute): Record<string, unknown> {
  const time = (at: number | undefined): string | null =>
    at === undefined ? null : new Date(at).toISOString()
  return { type: 'route', target: label, ...route, since: time(since), nextTryAt: time(nextProbeAt) }
}

/** Runs `relay routes test`. */
export async function runRoutesTest(shell: Shell, flags: Flags, word: string): Promise<void> {
  const { out } = shell
  const attached = await attach(shell, flags)
  await using reader = await openJournal(attached)
  const entry = await findEntry(reader.journal, word)
  const isGiven = (flags.forward ?? flags.exec ?? flags.ignore) !== undefined
  const live = isGiven ? undefined : await routesOfInstance(attached, shell)
  const { routes, ignore } = live ?? (await routesOfSettings(attached))
  const configured = routes.filter(({ state }) => state !== 'gone')
  const results = explain(configured, ignore, entry)
  const ignored = ignoredBy(ignore, entry)
  const { n, event, action, provider: source } = entry
  if (shell.json) return out.object({ n, event, action, ignoredBy: ignored ?? null, routes: results })
  for (const line of table(results.map(({ target, matched, why }) => [matched ? 'yes' : 'no', target, why])))
    out.result(line)
  const name = `#${n} ${isCodeHost(source) ? '' : `${source}/`}${eventName(entry)}`
  if (ignored !== undefined) out.say(`${name} goes nowhere: it is ignored by ${ignored}`)
  else if (results.length === 0) out.say(`${name} goes nowhere: there are no routes`)
  else if (!results.some(({ matched }) => matched))
    out.say(
      `${name} goes nowhere: ${entry.verifiedBy === 'none' ? 'nothing proves it, and no route that matches names its source' : 'no route matches it'}`,
    )
}
