import type { Cancellable } from '../../../base/abort.js'
import { readLiveRoutes } from '../../../client/live-routes.js'
import { type LiveRoutes, liveRoutes } from '../../../dispatch/live-routes.js'
import { createRouting } from '../../../dispatch/routing.js'
import type { Journal } from '../../../journal/journal.js'
import { createLoopbackClient } from '../../../net/loopback-client.js'
import type { Attached } from '../../session/attach.js'
import { forwardSettings } from '../../settings/complete.js'

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
