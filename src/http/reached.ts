import type { Settings } from '../base/settings.js'
import { type HostCheck, hostCheck } from './host-check.js'

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

/** Names that other machines use for a service, besides the address that it listens on. */
export function namesElsewhere({
  publicUrl,
  allowedHosts,
}: Pick<Settings, 'publicUrl' | 'allowedHosts'>): readonly string[] {
  return [...(publicUrl === undefined ? [] : [new URL(publicUrl).hostname]), ...allowedHosts]
}

/**
 * Derives from the settings how browsers reach a service.
 * @param address where the service listens; called for each request, since it is not known before
 */
export function reachedAt(settings: ReachSettings, address: () => string): Reached {
  const { host, inspectHosts = [], publicUrl, baseUrl } = settings
  const reached = (): string => publicUrl ?? address()
  return {
    publicUrl: reached,
    baseUrl: () => baseUrl ?? `${reached()}/`,
    hostAllowed: hostCheck({ host, allowed: [...namesElsewhere(settings), ...inspectHosts] }),
  }
}

/**
 * Makes the check of the Host header for pages that only this machine may see: loopback names, whatever else the
 * service accepts.
 */
export function ownHostCheck({ inspectHosts = [] }: Pick<Settings, 'inspectHosts'>): HostCheck {
  return hostCheck({ host: 'localhost', allowed: inspectHosts })
}
