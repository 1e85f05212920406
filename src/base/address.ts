/**
 * Parses an absolute address, or one relative to `base`. Returns undefined for an invalid one. `URL.canParse` is not
 * used: in Node 20 and 22 it rejects addresses with letters such as `ü` once V8 has optimized its caller.
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}

/**
 * Decodes the percent-encoding of a user name or password in an address. Text with an invalid escape is returned
 * unchanged.
 */
export function decodeUserinfo(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * True if a host name, as `URL.hostname` spells it, means this machine: `localhost`, `*.localhost` (RFC 6761 section
 * 6.3), 127.0.0.0/8 or `[::1]`. Looks up no name.
 */
export function isLoopback(hostname: string): boolean {
  return /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname.toLowerCase())
}

/** Formats a host for a URL: an IPv6 address in brackets. */
export function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

/**
 * Parses an absolute http(s) address. The error messages of these parsers complete "<name>: …". They do not repeat the
 * address, which may contain a password.
 * @throws Error for anything else, and for a user name or password.
 */
export function parseHttpUrl(text: string): URL {
  const url = parseUrl(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw new Error('must be an absolute http:// or https:// address')
  if (url.username || url.password) throw new Error('must not contain a user name or password')
  return url
}

/** Returns an address with a path and a query, given without `?`, after its own ones. */
export function withRest(
  address: URL,
  { path = '', query = '' }: { path?: string | undefined; query?: string | undefined },
): URL {
  if (query === '' && path === '') return address
  const url = new URL(address)
  if (path !== '') url.pathname = url.pathname.replace(/\/$/, '') + path
  if (query !== '') url.search = url.search === '' ? query : `${url.search}&${query}`
  return url
}

const PORT = /^:?\d{1,5}(?=[/?#]|$)/
const LOCAL_HOST = /^(?:(?:[\w-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?(?=[/?#]|$)/i

/**
 * Expands `3000`, `:3000/hooks` and `localhost:3000/hooks` to http addresses on this machine. Other text is unchanged.
 */
export function expandLocal(text: string): string {
  if (PORT.test(text)) return `http://localhost:${text.replace(/^:/, '')}`
  return LOCAL_HOST.test(text) ? `http://${text}` : text
}

/**
 * Parses an address to which paths are appended.
 * @throws Error as {@link parseHttpUrl}, and for a query or a fragment.
 */
export function parseWebAddress(text: string): URL {
  const url = parseHttpUrl(text)
  if (url.search || url.hash) throw new Error('must not contain a query or a fragment')
  return url
}

/**
 * Parses an address whose traffic others must not read: https, or http on this machine.
 * @throws Error as {@link parseWebAddress}, and for http to another machine.
 */
export function parsePrivateAddress(text: string): URL {
  const url = parseWebAddress(text)
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    throw new Error('must be https, unless it is on this machine')
  return url
}
