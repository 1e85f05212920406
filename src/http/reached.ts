import type { Settings } from '../base/settings.js'
import { type HostCheck, hostCheck } from './router.js'

/** Settings that decide how browsers reach a service. */
type ReachSettings = Pick<Settings, 'host' | 'allowedHosts' | 'inspectHosts' | 'publicUrl' | 'baseUrl'>

/** Addresses at which browsers reach a service, and the names by which they may. */
export interface Reached {
  /** Public address of the service, without a trailing slash. */
  readonly publicUrl: () => string
  /** Address of the page that a browser is sent to after signing in. */
  readonly baseUrl: () => string
  readonly hostAllowed: HostCheck
}

/**
 * Derives from the settings how browsers reach a service.
 * @param address where the service listens; called for each request, since it is not known before
 */
export function reachedAt(settings: ReachSettings, address: () => string): Reached {
  const { host, allowedHosts, inspectHosts = [], publicUrl, baseUrl } = settings
  const publicName = publicUrl === undefined ? [] : [new URL(publicUrl).hostname]
  const reached = (): string => publicUrl ?? address()
  return {
    publicUrl: reached,
    baseUrl: () => baseUrl ?? `${reached()}/`,
    hostAllowed: hostCheck({ host, allowed: [...allowedHosts, ...inspectHosts, ...publicName] }),
  }
}
