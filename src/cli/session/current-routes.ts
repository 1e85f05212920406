import type { Cancellable } from '../../base/abort.js'
import { readLiveRoutes } from '../../client/live-routes.js'
import { type LiveRoutes, liveRoutes } from '../../dispatch/live-routes.js'
import { createRouting } from '../../dispatch/routing.js'
import type { Journal } from '../../journal/journal.js'
import { createLoopbackClient } from '../../net/loopback-client.js'
import type { NamedTarget } from '../../dispatch/short-names.js'
import type { Attached } from './attach.js'
import { forwardSettings } from '../settings/complete.js'

/** The routes of the profile's instance; undefined if none runs. */
export async function routesOfInstance(
  { instance }: Pick<Attached, 'instance'>,
  { signal }: Cancellable,
): Promise<LiveRoutes | undefined> {
  if (!instance) return undefined
  using client = createLoopbackClient()
  return await readLiveRoutes(instance, { send: client.send, signal })
}

/** The routes of the settings, with the counts of a journal if there is one. */
export async function routesOfSettings(
  { options }: Pick<Attached, 'options'>,
  journal?: Pick<Journal, 'counts'>,
): Promise<LiveRoutes> {
  return liveRoutes(createRouting(forwardSettings(options)), [], (await journal?.counts()) ?? new Map())
}

/**
 * The names that targets have: in the instance, else in the settings. The instance does not tell passwords and queries, so a
 * target whose address has one is not named.
 */
export async function namedTargets(
  attached: Pick<Attached, 'instance' | 'options'>,
  options: Cancellable,
): Promise<readonly NamedTarget[]> {
  const live = await routesOfInstance(attached, options)
  if (!live) return createRouting(forwardSettings(attached.options)).routes
  return live.routes.map(({ match, label, name }) => ({
    id: match === '*' ? `*=${label}` : label,
    ...(name !== undefined && { name }),
  }))
}
