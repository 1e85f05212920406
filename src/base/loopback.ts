/**
 * Whether a host name, as `URL.hostname` spells it, means this machine: `localhost`, `*.localhost` (RFC 6761
 * section 6.3), 127.0.0.0/8 or `[::1]`. No name is looked up.
 */
export function isLoopback(hostname: string): boolean {
  return /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname.toLowerCase())
}

/** A host name as `URL.hostname` spells it, for who connects to it: an IPv6 address without its brackets. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}
