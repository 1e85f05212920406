import type { Cancellable } from '../../../base/abort.js'
import { readLiveRoutes } from '../../../client/live-routes.js'
import { type LiveRoutes, liveRoutes } from '../../../dispatch/live-routes.js'
import { createRouting } from '../../../dispatch/routing.js'
import { findInstance } from '../../../instance/instance.js'
import type { Journal } from '../../../journal/journal.js'
import { createLoopbackClient } from '../../../net/loopback-client.js'
import { databaseExists, openDatabase } from '../../../store/open.js'
import { forwardSettings, profileFolder } from '../../settings/complete.js'
import type { Prepared } from '../../settings/prepare.js'

/** The routes of the profile's instance, which has proved itself; undefined if none runs. */
export async function routesOfInstance(
  { options }: Pick<Prepared, 'options'>,
  { signal }: Cancellable,
): Promise<LiveRoutes | undefined> {
  const folder = profileFolder(options)
  if (!databaseExists(folder)) return undefined
  await using database = await openDatabase({ kind: 'file', folder })
  using client = createLoopbackClient()
  const instance = await findInstance(database.store, { signal, send: client.send })
  return instance && (await readLiveRoutes(instance, { send: client.send, signal }))
}

/** The routes of the settings, with the counts of a journal if there is one. */
export async function routesOfSettings(
  { options }: Pick<Prepared, 'options'>,
  journal?: Pick<Journal, 'counts'>,
): Promise<LiveRoutes> {
  return liveRoutes(createRouting(forwardSettings(options)), [], (await journal?.counts()) ?? new Map())
}
