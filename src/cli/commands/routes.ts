import { RelayError, isError } from '../../base/errors.js'
import type { ProfileRoute, ReadRoutes } from '../../base/settings.js'
import { qualified } from '../../base/source-names.js'
import {
  addProfileRoute,
  profileRouteOf,
  readProfileRoutes,
  removeProfileRoute,
} from '../../dispatch/profile-routes.js'
import {
  explainRoutes,
  ignoredBy,
  type LiveRoute,
  liveRoutes,
  type LiveRoutes,
  type Route,
  withoutSecrets,
} from '../../dispatch/routes.js'
import { Routing } from '../../dispatch/routing.js'
import { resolved } from '../../dispatch/variables.js'
import { parseCondition } from '../../dispatch/where.js'
import type { RunningInstance } from '../../instance/protocol.js'
import { Journal } from '../../journal/journal.js'
import { ENTRY, STORED } from '../options.js'
import { define, type Flags, type Shell } from '../command.js'
import { callInstance } from '../instance-client.js'
import { findEntry } from '../journal.js'
import { eventName } from '../output/deliveries.js'
import { marked, outside, own, timeField } from '../output/outside.js'
import type { Output } from '../output/output.js'
import { spokenTime, timeOfDay } from '../output/time.js'
import { stopFirst } from '../advice.js'
import { openProfile, type Profile } from '../profile.js'
import { routeSettings } from '../settings/derived.js'
import { applyStored, refuseMemory } from '../stored.js'

const ROUTES_ENV = ['home', 'store', 'tokenKey'] as const

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

const addCommand = define({
  description: `Stores a route in the profile. The running relay serve uses it at once, and so does every later one, in addition to the
routes of its settings. It forwards to an address; commands are for --exec. In the value of a header, $NAME is the variable of the
environment in which this command runs, and $$ is a $. The route is stored with its value.`,
  examples: `relay routes add http://localhost:3000/hooks
relay routes add 'app=push,pull_request=http://localhost:3000/hooks'
relay routes add 'push[ref==refs/heads/main]=3000' --ordered --timeout 2m
relay routes add https://ci.example.com/hooks --header 'Authorization: Bearer $CI_KEY'`,
  args: [['<route>', '[name=][match[condition]=]address, as of --forward']],
  options: [
    ['--where <expression>', 'payload must match this expression; all must match', { repeatable: true }],
    ['--timeout <duration>', 'time limit of one attempt, or none'],
    ['--ordered', 'hold up later deliveries while one is being retried'],
    ['--header <header>', 'add a header, as "Name: value"', { repeatable: true }],
  ],
  env: ROUTES_ENV,
  run: runAdd,
  print: ({ label, problem, isReloaded, pid }, out) => {
    out.result(`Stored the route ${label}`)
    if (isReloaded) out.say(`Process ${pid} forwards along it from now on`)
    if (problem !== undefined) out.log.warn(problem)
  },
  json: ({ label, name }) => marked({ type: 'route', target: own(label), name: own(name), stored: true }),
})

const removeCommand = define({
  description:
    'Removes a route that relay routes add, or the inspector, stored. Deliveries that wait for its target stay in the journal.',
  examples: 'relay routes remove app\nrelay routes remove push=http://localhost:3000/hooks',
  args: [['<route>', 'its name, or the target as relay routes shows it']],
  env: ROUTES_ENV,
  run: runRemove,
  print: ({ label, problem, isReloaded, pid }, out) => {
    out.result(`Removed the route ${label}`)
    if (isReloaded) out.say(`Process ${pid} no longer forwards along it`)
    if (problem !== undefined) out.log.warn(problem)
  },
  json: ({ label, name }) => marked({ type: 'route', target: own(label), name: own(name), removed: true }),
})

export const routesCommand = define({
  ...STORED,
  description: `Lists the routes of the running relay serve: where deliveries go, whether each target answers, and how many deliveries of
the journal were forwarded to it, failed there, or wait. Without a running relay serve, lists those of the settings.`,
  examples: "relay routes\nrelay routes add 'push=http://localhost:3000/hooks'\nrelay routes test last",
  subcommands: {
    add: { summary: 'store a route in the profile', ...addCommand },
    remove: { summary: 'remove a stored route', ...removeCommand },
    test: { summary: 'show which routes match a delivery, and why', ...routesTestCommand },
  },
  run: runRoutes,
  print,
  json,
})

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
  return liveRoutes(new Routing(await allRoutes(profile)), [], counts ?? new Map())
}

/** Reads the routes of the settings and of the profile. */
async function allRoutes(profile: Profile): Promise<ReadRoutes> {
  const data = await profile.data()
  const profileRoutes = data ? await readProfileRoutes(data.store) : []
  return { ...routeSettings(profile), profileRoutes }
}

/** Column headings. The target is last: on a narrow terminal its address, which is never cut, gets its own line. */
const HEADINGS = ['forwarded', 'failed', 'waiting', 'state', 'target']

function describeRoute(route: LiveRoute): string[] {
  const { succeeded, failed, waiting, name, label, options = [], ofProfile } = route
  const counts = [succeeded, failed, waiting].map(String)
  const shown = [...options, ...(ofProfile ? ['of the profile'] : [])]
  return [
    ...counts,
    describeState(route),
    [...(name === undefined ? [] : [name]), label, ...shown.map((text) => `(${text})`)].join(' '),
  ]
}

function describeState(route: LiveRoute): string {
  const { state, waitsFor } = route
  const shown = stateOf(route)
  return waitsFor === undefined || state !== 'up' ? shown : `${shown}, ${waitsFor}`
}

function stateOf({ state, since, nextProbeAt, waitsFor = 'down' }: LiveRoute): string {
  if (state === 'gone') return 'not configured'
  if (state === 'elsewhere') return 'forwarded by another relay'
  if (state !== 'down') return state
  if (nextProbeAt !== undefined) return `${waitsFor}, next try ${timeOfDay(nextProbeAt)}`
  return since === undefined ? waitsFor : `${waitsFor}, since ${spokenTime(since, Date.now())}`
}

function json({ routes, ignore }: Listed) {
  const ignored = ignore.map((match) => marked({ type: 'ignore', match: own(match) }))
  return [...routes.map(routeObject), ...ignored]
}

function routeObject(route: LiveRoute) {
  const { label, match, name, options, state, waiting, succeeded, failed } = route
  const { since, nextProbeAt, waitsFor } = route
  const time = (at: number | undefined) => (at === undefined ? null : timeField(at))
  const about = {
    type: 'route',
    target: own(label),
    match: own(match),
    name: own(name),
    ...(options && { options: options.map(own) }),
    ...(route.ofProfile && { from: 'profile' as const }),
    state,
  } as const
  const counts = { waiting, succeeded, failed }
  return marked({
    ...about,
    ...counts,
    since: time(since),
    nextTryAt: time(nextProbeAt),
    waitsFor: outside(waitsFor ?? null),
  })
}

// add and remove

type RouteInput = Flags & { readonly route: string }

interface AddInput extends RouteInput {
  readonly where?: readonly string[]
  readonly timeout?: string
  readonly ordered?: boolean
  readonly header?: readonly string[]
}

async function runAdd(shell: Shell, flags: AddInput) {
  await using profile = await openProfile(shell, flags, { mustExist: false })
  refuseMemory(profile, 'routes')
  const given = definitionOf(flags, shell.env)
  const data = await profile.createData()
  const route = await addProfileRoute(data.store, given, routeSettings(profile))
  const added = await changed(shell, profile, route)
  const { instance } = profile
  if (!instance || !added.isReloaded || (await isUsed(shell, instance, route))) return added
  const problem = `the settings of process ${instance.pid} have a route of that name or target, which counts instead`
  return { ...added, isReloaded: false, problem }
}

/** @throws RelayError `usage` for an invalid route, or header */
function definitionOf(
  { route, where = [], timeout, ordered, header = [] }: AddInput,
  env: Shell['env'],
): ProfileRoute {
  const written = profileRouteOf(route)
  return {
    ...written,
    where: [...[written.where ?? []].flat(), ...where.map((text) => parseCondition(text, '--where').text)],
    timeout,
    ordered,
    headers: headersOf(header, env),
  }
}

/** Reads headers such as `Name: value`, with their variables. The messages quote no value. */
function headersOf(given: readonly string[], env: Shell['env']): Readonly<Record<string, string>> {
  const headers = new Map<string, string>()
  for (const text of given) {
    const [, name, value = ''] = /^([^\s:]+):\s*(.*)$/s.exec(text.trim()) ?? []
    if (name === undefined)
      throw new RelayError('usage', '--header: must be a name, a colon and a value: "X-Key: 1"')
    const shown = JSON.stringify(name)
    if ([...headers.keys()].some((other) => other.toLowerCase() === name.toLowerCase()))
      throw new RelayError('usage', `--header: ${shown} is there twice`)
    try {
      headers.set(name, resolved(value, shown, env))
    } catch (cause) {
      throw new RelayError('usage', `--header: ${isError(cause) ? cause.message : ''}`, { cause })
    }
  }
  return Object.fromEntries(headers)
}

async function runRemove(shell: Shell, flags: RouteInput) {
  await using profile = await openProfile(shell, flags)
  const data = await profile.data()
  const route = data && (await removeProfileRoute(data.store, flags.route))
  if (!route)
    throw new RelayError(
      'usage',
      `The profile stores no route ${withoutSecrets(flags.route)}. ${profile.command('routes')} shows those that are of the profile`,
    )
  return await changed(shell, profile, route)
}

/** True if the running instance forwards along a stored route, whose name or target its settings could have. */
async function isUsed(shell: Shell, instance: RunningInstance, { label }: Route): Promise<boolean> {
  const { routes } = await callInstance(instance, 'routes', {}, shell)
  return routes.some((route) => route.ofProfile && route.label === label)
}

/** Has the running instance use the change. */
async function changed(shell: Shell, profile: Profile, { label, name }: Route) {
  const { reloaded, problem } = await applyStored(shell, profile, 'routes')
  return { label, name, problem, isReloaded: reloaded !== undefined, pid: profile.instance?.pid }
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
  const name = `#${n} ${qualified(source, eventName(entry))}`
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
