import type { Cancellable } from '../base/abort.js'
import type { Log } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import { labelOf } from '../dispatch/route.js'
import type { Routing } from '../dispatch/routing.js'
import { takeInstance } from '../instance/instance.js'
import type { Relay } from '../relay.js'
import { joinService } from './membership.js'
import { type Ownership, sharedOwnership, watchOwnership } from './ownership.js'

/**
 * Takes the profile for the relay that listens at `url`; where several relays may serve it, joins them.
 * @throws RelayError `unavailable` when another relay has it, `settings` when the others have other routes, `storage`.
 */
export async function takeProfile(
  { database, routing }: Pick<Relay, 'database' | 'routing'>,
  settings: Settings,
  url: string,
  { log, signal }: Cancellable & { readonly log: Log },
): Promise<Ownership> {
  const { provider, providerUrl, publicUrl = url, oauthClient, maxBody } = settings
  const own = { pid: process.pid, url, provider, providerUrl, publicUrl, clientId: oauthClient?.id, maxBody }
  const { store, sql } = database
  if (!sql.leases) return watchOwnership(database, await takeInstance(store, own, { signal }))
  const routes = commonRoutes(routing, settings)
  return sharedOwnership(await joinService({ store, leases: sql.leases, own, routes, labelOf, log }))
}

/** What all relays of a service need alike: where a delivery goes, and in which order. */
export function commonRoutes(
  { routes, ignore }: Pick<Routing, 'routes' | 'ignore'>,
  { concurrency }: Pick<Settings, 'concurrency'>,
): readonly string[] {
  const ids = [...new Set(routes.map(({ id }) => id))]
  return [...ids, ...ignore.map(({ text }) => `ignore ${text}`), `concurrency ${concurrency}`]
}
