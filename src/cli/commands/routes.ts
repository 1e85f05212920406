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
import { define, type Flags, type Shell } from '../command.js'
import { callInstance } from '../instance-client.js'
import { findEntry } from '../journal.js'
import { ENTRY, STORED } from '../options.js'
import { eventName } from '../output/deliveries.js'
import { marked, outside, own, timeField } from '../output/outside.js'
import type { Output } from '../output/output.js'
import { spokenTime, timeOfDay } from '../output/time.js'
import { stopFirst } from '../advice.js'
import { openProfile, type Profile } from '../profile.js'
import { routeSettings } from '../settings/derived.js'

interface Listed extends LiveRoutes {
  readonly isLive: boolean
  /** True if an instance exists that cannot be called. */
  readonly isUnreachable: boolean
  /** Message if there are no routes. */
  readonly none: string
}

async function runRoutes(shell: Shell, flags: Flags): Promise<Listed> {
  await using profile = await openProfile(shell, flags)
  const { instance } = profile
  const live = instance && (await callInstance(instance, 'routes', {}, shell))
  const { routes, ignore } = live ?? (await routesOfSettings(profile))
  const start = stopFirst(profile) ? `${stopFirst(profile)}start` : 'Start'
  const none = `There are no routes. ${start} one with ${profile.command('serve --forward 3000')}, or set forward in relay.json`
  const isUnreachable = profile.unreachable !== undefined
  return { routes, ignore, isLive: live !== undefined, isUnreachable, none }
}

function print({ routes, ignore, isLive, isUnreachable, none }: Listed, out: Output): void {
  if (!isLive)
    out.say(
      `${isUnreachable ? 'These' : 'No relay is running for this profile: these'} are the routes of the settings`,
    )
  if (routes.length > 0) out.table([HEADINGS, ...routes.map(describeRoute)])
  else out.say(none)
  if (ignore.length > 0) out.result(`ignored: ${ignore.join(', ')}`)
}

/** Returns the routes of the settings, with the counts of the journal if there is one. */
async function routesOfSettings(profile: Profile): Promise<LiveRoutes> {
  const data = await profile.data()
  const counts = await (data && new Journal(data.sql).counts())
  return liveRoutes(new Routing(routeSettings(profile)), [], counts ?? new Map())
}

/** Column headings. The target is last: on a narrow terminal its address, which is never cut, gets its own line. */
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

function json({ routes, ignore }: Listed) {
  const ignored = ignore.map((match) => marked({ type: 'ignore', match: own(match) }))
  return [...routes.map(routeObject), ...ignored]
}

function routeObject(route: LiveRoute) {
  const { label, match, name, state, waiting, succeeded, failed, since, nextProbeAt } = route
  const time = (at: number | undefined) => (at === undefined ? null : timeField(at))
  const about = { type: 'route', target: own(label), match: own(match), name: own(name), state } as const
  const counts = { waiting, succeeded, failed }
  return marked({ ...about, ...counts, since: time(since), nextTryAt: time(nextProbeAt) })
}

// test

type TestInput = Flags & { readonly entry: string }

async function runTest(shell: Shell, flags: TestInput) {
  await using profile = await openProfile(shell, flags)
  const journal = await profile.journal()
  const entry = await findEntry(journal, flags.entry)
  const isGiven = (flags.forward ?? flags.exec ?? flags.ignore) !== undefined
  const { instance } = profile
  const live = instance && !isGiven ? await callInstance(instance, 'routes', {}, shell) : undefined
  const { routes, ignore } = live ?? (await routesOfSettings(profile))
  const configured = routes.filter(({ state }) => state !== 'gone')
  return { entry, results: explainRoutes(configured, ignore, entry), ignored: ignoredBy(ignore, entry) }
}
type Tested = Awaited<ReturnType<typeof runTest>>

function printTest({ entry, results, ignored }: Tested, out: Output): void {
  const { n, provider: source, verifiedBy } = entry
  out.table(results.map(({ target, matched, why }) => [matched ? 'yes' : 'no', target, why]))
  const name = `#${n} ${isCodeHost(source) ? '' : `${source}/`}${eventName(entry)}`
  if (ignored !== undefined) out.say(`${name} goes nowhere: it is ignored by ${ignored}`)
  else if (results.length === 0) out.say(`${name} goes nowhere: there are no routes`)
  else if (!results.some(({ matched }) => matched))
    out.say(
      `${name} goes nowhere: ${verifiedBy === 'none' ? 'nothing proves it, and no route that matches names its source' : 'no route matches it'}`,
    )
}

function testJson({ entry, results, ignored }: Tested) {
  const { n, event, action } = entry
  const routes = results.map(({ target, matched, why }) => ({
    target: own(target),
    matched,
    why: outside(why),
  }))
  return marked({
    n,
    event: outside(event),
    action: outside(action),
    ignoredBy: own(ignored ?? null),
    routes,
  })
}

export const routesTestCommand = define({
  ...STORED,
  description: `Shows for every route of the running relay serve whether a delivery of the journal matches it, and why. Routes given here
replace those, so that you can try a change before you make it.`,
  examples: `relay routes test last
relay routes test 7 --forward 'pull_request.*=http://localhost:3000/pr'`,
  args: [ENTRY],
  settings: ['forward', 'exec', 'ignore'],
  run: runTest,
  print: printTest,
  json: testJson,
})

export const routesCommand = define({
  ...STORED,
  description: `Lists the routes of the running relay serve: where deliveries go, whether each target answers, and how many deliveries of
the journal were forwarded to it, failed there, or wait. Without a running relay serve, lists those of the settings.`,
  examples: 'relay routes\nrelay routes test last',
  run: runRoutes,
  print,
  json,
  subcommands: { test: { summary: 'show which routes match a delivery, and why', ...routesTestCommand } },
})
