/**
 * Whether a host name, as `URL.hostname` spells it, means this machine: `localhost`, `*.localhost` (RFC 6761
 * section 6.3), 127.0.0.0/8 or `[::1]`. Looks up no name.
 */
export function isLoopback(hostname: string): boolean {
  return /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname.toLowerCase())
}
