/**
 * An absolute address, or one relative to `base`; undefined for a text that is none. Not `URL.canParse`: in Node 20 and 22 it
 * takes addresses with letters such as `ü` for invalid once V8 has optimized its caller.
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}

/** A user name or password of an address, as it was meant: escapes that stand for nothing are left as they are. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * Whether a host name, as `URL.hostname` spells it, means this machine: `localhost`, `*.localhost` (RFC 6761
 * section 6.3), 127.0.0.0/8 or `[::1]`. Looks up no name.
 */
export function isLoopback(hostname: string): boolean {
  return /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname.toLowerCase())
}

/**
 * An absolute http(s) address. The messages of these functions complete "<name>: …", and do not repeat the address, which may
 * contain a password.
 * @throws Error for anything else, and for a user name or password.
 */
export function parseHttpUrl(text: string): URL {
  const url = parseUrl(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw new Error('must be an absolute http:// or https:// address')
  if (url.username || url.password) throw new Error('must not contain a user name or password')
  return url
}

const PORT = /^:?\d{1,5}(?=[/?#]|$)/
const LOCAL_HOST = /^(?:(?:[\w-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?(?=[/?#]|$)/i

/** `3000`, `:3000/hooks` and `localhost:3000/hooks` as http addresses on this machine; any other text unchanged. */
export function expandLocal(text: string): string {
  if (PORT.test(text)) return `http://localhost:${text.replace(/^:/, '')}`
  return LOCAL_HOST.test(text) ? `http://${text}` : text
}

/** An address to which paths are added. @throws Error as {@link parseHttpUrl}, and for a query or a fragment. */
export function parseWebAddress(text: string): URL {
  const url = parseHttpUrl(text)
  if (url.search || url.hash) throw new Error('must not contain a query or a fragment')
  return url
}

/** Requires https, unless on this machine, so that others cannot read the traffic. @throws Error as {@link parseWebAddress} */
export function parsePrivateAddress(text: string): URL {
  const url = parseWebAddress(text)
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    throw new Error('must be https, unless it is on this machine')
  return url
}
