import { BlockList, isIP, isIPv4 } from 'node:net'
import { parseUrl } from '../base/address.js'
import { NetFailure } from './failure.js'

/**
 * Error for a proxy variable with an unusable value. The message names the variable but not the value, which can
 * contain a password.
 */
export class ProxySettingError extends NetFailure {
  override readonly name = 'ProxySettingError'
}

/** Error for a proxy that did not connect: it answered this status or, if undefined, nothing. */
export class ProxyAnswerError extends NetFailure {
  override readonly name = 'ProxyAnswerError'
  readonly status: number | undefined

  constructor(status?: number) {
    super(status === undefined ? 'the proxy does not answer' : `the proxy answers ${status}`)
    this.status = status
  }
}

type Env = Readonly<Record<string, string | undefined>>

/**
 * Finds the proxy for an address, or undefined. Reads the variables that curl and Go read: HTTPS_PROXY or HTTP_PROXY by
 * the address's scheme, else ALL_PROXY, unless NO_PROXY names the host. Each may be lower case, which wins. A proxy
 * without a scheme is http.
 * @throws ProxySettingError
 */
export function proxyFor(url: URL, env: Env): URL | undefined {
  const named = [url.protocol === 'https:' ? 'https_proxy' : 'http_proxy', 'all_proxy'].flatMap(spellings)
  const variable = named.find((name) => env[name])
  if (variable === undefined) return undefined
  const excluded = spellings('no_proxy').flatMap((name) => env[name] || [])[0] ?? ''
  return isExcluded(url, excluded) ? undefined : parseProxy(env[variable] ?? '', variable)
}

function spellings(name: string): string[] {
  return [name, name.toUpperCase()]
}

function parseProxy(text: string, variable: string): URL {
  const given = text.trim()
  const proxy = parseUrl(/^[a-z][a-z\d+.-]*:\/\//i.test(given) ? given : `http://${given}`)
  if (proxy?.protocol.startsWith('socks'))
    throw new ProxySettingError(
      `${variable} names a SOCKS proxy, which relay cannot use: set it to an http proxy, or the host in NO_PROXY`,
    )
  if (proxy && /^https?:$/.test(proxy.protocol) && proxy.hostname !== '') return proxy
  throw new ProxySettingError(
    `${variable} is not the address of a proxy: set it to http://host:port, or unset it`,
  )
}

/**
 * True if NO_PROXY names the host. Its entries are names, addresses or ranges of addresses, separated by commas,
 * semicolons or spaces.
 */
function isExcluded(url: URL, list: string): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  const entries = list.toLowerCase().split(/[\s,;]+/)
  return entries.some((entry) => {
    const [name, ofPort = port] = splitPort(entry)
    return name !== '' && ofPort === port && names(name, host)
  })
}

/**
 * Splits `host:8080`, `[::1]:8080` and `[fd00::]/8:8080`. An IPv6 address without brackets has no port. Omits dots at
 * the end of a name.
 */
function splitPort(entry: string): readonly [name: string, port?: string | undefined] {
  const [, name = entry, port] = /^(\[[^\]]*\](?:\/\d+)?|[^:]*)(?::(\d+))?$/.exec(entry) ?? []
  return [name.replaceAll(/[[\]]|\.+$/g, ''), port]
}

/**
 * True if an entry names a host. `*` names every host, and `10.0.0.0/8` a range. `example.com`, `.example.com` and
 * `*.example.com` name that domain and its subdomains. Any other `*`, as in `192.168.*`, stands for any characters.
 */
function names(entry: string, host: string): boolean {
  const domain = entry.replace(/^\*?\./, '')
  if (domain.includes('*')) return isLike(host, entry)
  if (isIP(host) !== 0) return isInRange(host, domain)
  return host === domain || host.endsWith(`.${domain}`)
}

function isLike(host: string, pattern: string): boolean {
  const literal = (text: string): string => text.replaceAll(/[^\w-]/g, String.raw`\$&`)
  return new RegExp(`^${pattern.split(/\*+/).map(literal).join('.*')}$`).test(host)
}

/**
 * True if a host is an address of a range such as `10.0.0.0/8`, or that single address. False for a text that is no
 * range.
 */
function isInRange(host: string, range: string): boolean {
  const [network = '', bits] = range.split('/')
  if (isIP(host) === 0 || isIP(network) === 0) return false
  const all = isIPv4(network) ? 32 : 128
  const prefix = Number(bits ?? all)
  if (!/^\d+$/.test(bits ?? '0') || prefix > all) return false
  const addresses = new BlockList()
  addresses.addSubnet(network, prefix, isIPv4(network) ? 'ipv4' : 'ipv6')
  return addresses.check(host, isIPv4(host) ? 'ipv4' : 'ipv6')
}
