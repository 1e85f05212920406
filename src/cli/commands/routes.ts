import { isCodeHost } from '../../base/settings.js'
import {
  explainRoutes,
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
import { spokenTime, timeOfDay } from '../output/time.js'
import { type Attached, attach, commandFor, openData, routeSettings, stopFirst } from '../profile.js'

export async function runRoutes(shell: Shell, flags: Flags): Promise<void> {
  const { out } = shell
  const attached = await attach(shell, flags)
  const { instance } = attached
  const live = instance && (await callInstance(instance, 'routes', {}, shell))
  const { routes, ignore } = live ?? (await routesOfSettings(attached))
  if (shell.json) {
    for (const route of routes) out.object(routeObject(route))
    for (const match of ignore) out.object({ type: 'ignore', match })
    return
  }
  if (!live)
    out.say(
      `${attached.unreachable ? 'These' : 'No relay is running for this profile: these'} are the routes of the settings`,
    )
  if (routes.length > 0) out.table([HEADINGS, ...routes.map(describeRoute)])
  else
    out.say(
      `There are no routes. ${stopFirst(attached) ? `${stopFirst(attached)}start` : 'Start'} one with ${commandFor(attached, 'serve --forward 3000')}, or set forward in relay.json`,
    )
  if (ignore.length > 0) out.result(`ignored: ${ignore.join(', ')}`)
}

/** The routes of the settings, with the counts of the journal if there is one. */
async function routesOfSettings(attached: Attached): Promise<LiveRoutes> {
  await using data = await openData(attached)
  const counts = await (data && new Journal(data.sql).counts())
  return liveRoutes(new Routing(routeSettings(attached)), [], counts ?? new Map())
}

/** The target is last: on a narrow terminal its address, which is never cut, goes on a line of its own. */
const HEADINGS = ['forwarded', 'failed', 'waiting', 'state', 'target']

function describeRoute(route: LiveRoute): string[] {
  const { succeeded, failed, waiting, name, label } = route
  const counts = [succeeded, failed, waiting].map(String)
  return [...counts, describeState(route), name === undefined ? label : `${name} ${label}`]
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

export async function runRoutesTest(shell: Shell, flags: Flags, word: string): Promise<void> {
  const { out } = shell
  const attached = await attach(shell, flags)
  await using journal = await openJournal(attached)
  const entry = await findEntry(journal, word)
  const isGiven = (flags.forward ?? flags.exec ?? flags.ignore) !== undefined
  const { instance } = attached
  const live = instance && !isGiven ? await callInstance(instance, 'routes', {}, shell) : undefined
  const { routes, ignore } = live ?? (await routesOfSettings(attached))
  const configured = routes.filter(({ state }) => state !== 'gone')
  const results = explainRoutes(configured, ignore, entry)
  const ignored = ignoredBy(ignore, entry)
  const { n, event, action, provider: source } = entry
  if (shell.json) return out.object({ n, event, action, ignoredBy: ignored ?? null, routes: results })
  out.table(results.map(({ target, matched, why }) => [matched ? 'yes' : 'no', target, why]))
  const name = `#${n} ${isCodeHost(source) ? '' : `${source}/`}${eventName(entry)}`
  if (ignored !== undefined) out.say(`${name} goes nowhere: it is ignored by ${ignored}`)
  else if (results.length === 0) out.say(`${name} goes nowhere: there are no routes`)
  else if (!results.some(({ matched }) => matched))
    out.say(
      `${name} goes nowhere: ${entry.verifiedBy === 'none' ? 'nothing proves it, and no route that matches names its source' : 'no route matches it'}`,
    )
}
