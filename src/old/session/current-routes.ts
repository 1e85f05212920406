import type { Cancellable } from '../../base/abort.js'
import { callInstance } from '../../client/call-instance.js'
import { type LiveRoutes, liveRoutes } from '../../dispatch/live-routes.js'
import { createRouting, type NamedTarget } from '../../dispatch/routes.js'
import type { Journal } from '../../journal/journal.js'
import type { Attached } from './attach.js'
import { forwardSettings } from '../settings/complete.js'

/** The routes of the profile's instance; undefined if none runs. */
export async function routesOfInstance(
  { instance }: Pick<Attached, 'instance'>,
  { signal }: Cancellable,
): Promise<LiveRoutes | undefined> {
  return instance && (await callInstance(instance, 'routes', {}, { signal }))
}

/** The routes of the settings, with the counts of a journal if there is one. */
export async function routesOfSettings(
  { options }: Pick<Attached, 'options'>,
  journal?: Pick<Journal, 'counts'>,
): Promise<LiveRoutes> {
  return liveRoutes(createRouting(forwardSettings(options)), [], (await journal?.counts()) ?? new Map())
}

/**
 * The configured targets by their {@link publicId}, with the names that they have in the instance, else in the settings. Targets
 * that differ only in their secrets have no names, since it is not known which of them is meant.
 */
export async function namedTargets(
  attached: Pick<Attached, 'instance' | 'options'>,
  options: Cancellable,
): Promise<readonly NamedTarget[]> {
  const { routes } = (await routesOfInstance(attached, options)) ?? (await routesOfSettings(attached))
  const targets = routes.map(({ match, label, name }) => ({ id: match === '*' ? `*=${label}` : label, name }))
  return targets.map(({ id, name }) => {
    const isOnly = targets.every((other) => other.id !== id || other.name === name)
    return isOnly && name !== undefined ? { id, name } : { id }
  })
}
