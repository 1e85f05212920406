import type { LiveRoute } from '../../../dispatch/live-routes.js'
import { Journal } from '../../../journal/journal.js'
import { mayHaveData, openDatabase } from '../../../store/open.js'
import type { Context } from '../../context.js'
import type { Output } from '../../output/output.js'
import { spokenTime, timeOfDay } from '../../output/time.js'
import { cutLine } from '../../output/line.js'
import { table } from '../../output/table.js'
import { attach, type Attached } from '../../session/attach.js'
import { profileFolder, storeOf } from '../../settings/complete.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { routesOfInstance, routesOfSettings } from '../../session/current-routes.js'

/** Runs `relay routes`. */
export async function runRoutes(context: Context, flags: CommonFlags): Promise<void> {
  const attached = await attach(context, flags)
  const { output } = attached
  const live = await routesOfInstance(attached, context)
  const { routes, ignore } = live ?? (await routesWithoutInstance(attached))
  if (flags.json) {
    for (const route of routes) output.object(routeObject(route))
    for (const match of ignore) output.object({ type: 'ignore', match })
    return
  }
  if (!live) output.say('No relay is running for this profile: these are the routes of the settings')
  print(routes, output)
  if (ignore.length > 0) output.result(`ignored: ${ignore.join(', ')}`)
}

async function routesWithoutInstance(attached: Attached): ReturnType<typeof routesOfSettings> {
  const [folder, store] = [profileFolder(attached.options), storeOf(attached.options)]
  if (!mayHaveData(store, folder)) return routesOfSettings(attached)
  await using database = await openDatabase({ kind: store, folder, create: false })
  return await routesOfSettings(attached, new Journal(database.sql))
}

/** The target is last, since it may be cut. */
const HEADINGS = ['forwarded', 'failed', 'waiting', 'state', 'target']

function print(routes: readonly LiveRoute[], output: Output): void {
  if (routes.length === 0)
    return output.say(
      'There are no routes. Start one with relay serve --forward 3000, or set forward in relay.json',
    )
  const rows = routes.map((route) => [
    ...[route.succeeded, route.failed, route.waiting].map(String),
    describeState(route),
    route.name === undefined ? route.label : `${route.name} ${route.label}`,
  ])
  for (const line of table([HEADINGS, ...rows])) output.result(cutLine(line, output.width))
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
