import { isIPv4, isIPv6 } from 'node:net'
import { hostInUrl, isLoopback } from '../base/address.js'

/** Checks a Host header. True if the request may be answered. */
export type HostCheck = (host: string | undefined) => boolean

/**
 * Creates the check of the Host header against DNS rebinding: a web page that points its own name at this machine sends
 * that name. Accepts `localhost`, `*.localhost`, 127.0.0.0/8, `[::1]`, the address listened on and the `allowed` names.
 * If that address is not loopback, any IP literal too, since no name was looked up then. Ignores ports, case and one
 * trailing dot.
 */
export function hostCheck({ host, allowed }: { host: string; allowed: readonly string[] }): HostCheck {
  const bound = hostInUrl(host.toLowerCase())
  const names = new Set([bound, ...allowed.map((name) => nameOf(name) ?? name)])
  const anyAddress = !isLoopback(bound)
  return function hostAllowed(hostHeader = '') {
    const name = nameOf(hostHeader)
    return name !== undefined && (names.has(name) || isLoopback(name) || (anyAddress && isAddress(name)))
  }
}

const HOST = /^(?:(\[[0-9a-f:.]+\])|([0-9a-z_-]+(?:\.[0-9a-z_-]+)*)\.?)(?::\d{0,5})?$/

/**
 * Extracts the name or bracketed address from a Host header (RFC 9110 section 7.2), in lower case, without port and
 * trailing dot.
 */
function nameOf(host: string): string | undefined {
  const [, address, name] = HOST.exec(host.toLowerCase()) ?? []
  return address ?? name
}

function isAddress(name: string): boolean {
  return name.startsWith('[') ? isIPv6(name.slice(1, -1)) : isIPv4(name)
}
