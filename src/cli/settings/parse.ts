import {
  MAX_MAX_BODY,
  NEW_TUNNEL,
  ON_DUPLICATE,
  parseUserId,
  PROVIDER_NAMES,
  type RouteDefinition,
  STORE_KINDS,
  type StoreText,
} from '../../base/settings.js'
import { isSharedAddress, SharedStore, splitPassword } from '../../base/shared-store.js'
import { parseDuration } from '../../base/time.js'
import { expandLocal, parseHttpUrl, parsePrivateAddress, parseWebAddress } from '../../base/address.js'
import { MAX_CONCURRENCY, readRoute, readTimeout } from '../../dispatch/route-object.js'
import { readSourceReply } from '../../dispatch/routes.js'
import { parseExec, parseForward } from '../../dispatch/route-text.js'
import { parseMatch } from '../../journal/filter.js'
import { parseJson } from '../../json/parse.js'
import { type DEFAULT_VALUES, type SettingName, SIZES } from './table.js'

const anyText = (text: string): string => text
const port = wholeNumber(0, 65_535)
const HOST_NAME = /^[A-Za-z0-9._-]{1,255}$/
const encryptionKey = matching(/^[A-Za-z0-9+/]{43}=$/, '32 bytes in base64: openssl rand -base64 32')
const hostName = matching(HOST_NAME, 'a host name, without a port')

/**
 * Parsers of each setting. Not in the table, since help does not need them. Each throws an Error whose message
 * completes "<name>: …" and never repeats the text, which can be a secret in the wrong place.
 */
export const PARSERS = {
  profile: matching(
    /^(?!\.)[A-Za-z0-9._-]{1,64}$/,
    '1–64 letters, digits, ".", "_" or "-", not starting with "."',
  ),
  home: anyText,
  user: userId,
  provider: oneOf(PROVIDER_NAMES),
  providerUrl: webAddress,
  clientId: anyText,
  clientSecret: anyText,
  webhookSecret: anyText,
  webhookSecretPrevious: anyText,
  sources: sourceTexts,
  port,
  host: matching(/^[A-Za-z0-9.:_-]{1,255}$/, 'a host name or an IP address, without brackets or port'),
  allowHost: hostNames,
  inspectHost: lines(hostName),
  metrics: oneOf(['on', 'off']),
  logFormat: oneOf(['text', 'json']),
  publicUrl: webAddress,
  baseUrl: pageAddress,
  store: storePlace,
  storePassword: anyText,
  tokenKey: encryptionKey,
  tokenKeyPrevious: encryptionKey,
  maxBody: wholeNumber(1, MAX_MAX_BODY),
  tokenTtl: duration,
  forward: lines(parseForward),
  exec: lines(parseExec),
  ignore: lines(parseMatch),
  routes: routeDefinitions,
  timeout: readTimeout,
  reply: lines(readSourceReply),
  concurrency: wholeNumber(1, MAX_CONCURRENCY),
  onDuplicate: oneOf(ON_DUPLICATE),
  keep: duration,
  keepMax: size,
  tunnel: (text: string) => (text === NEW_TUNNEL ? NEW_TUNNEL : withoutSlash(parsePrivateAddress(text))),
  hubToken: matching(/^relay-hub-[\w-]{43}$/, 'an invitation, as relay hub invite prints it'),
  sandboxPort: port,
} satisfies Readonly<Record<SettingName, (text: string) => unknown>>

type AllValues = { [Name in SettingName]: Awaited<ReturnType<(typeof PARSERS)[Name]>> }
/** Values that are set, by the name of the setting. */
export type GivenValues = Partial<AllValues>
/** All settings, with defaults for those that nothing sets. */
export type Values = GivenValues & Pick<AllValues, keyof typeof DEFAULT_VALUES | 'home'>

/** Parses routes that are objects, as JSON. */
function routeDefinitions(text: string): readonly RouteDefinition[] {
  let value: unknown
  try {
    value = parseJson(text)
  } catch (cause) {
    throw new Error('must be a JSON list of routes: [{ "match": "push", "exec": "./deploy.sh" }]', { cause })
  }
  if (!isRoutes(value))
    throw new Error('must be a list of routes: [{ "match": "push", "exec": "./deploy.sh" }]')
  return value
}

/** True for a list of routes. @throws RelayError `settings` for an invalid route */
function isRoutes(value: unknown): value is readonly RouteDefinition[] {
  if (!Array.isArray(value)) return false
  for (const [i, each] of value.entries()) readRoute(each, `routes[${i}]`)
  return true
}

function oneOf<const Name extends string>(names: readonly Name[]): (text: string) => Name {
  return (text) => {
    const found = names.find((name) => name === text)
    if (found === undefined) throw new Error(`must be one of ${names.join(', ')}`)
    return found
  }
}

function matching(pattern: RegExp, description: string): (text: string) => string {
  return (text) => {
    if (!pattern.test(text)) throw new Error(`must be ${description}`)
    return text
  }
}

function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= min && value <= max)) throw new Error(`must be a whole number from ${min} to ${max}`)
    return value
  }
}

/** Parses a duration. Milliseconds. */
function duration(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw new Error('must be a duration such as 12h or 30d')
  return ms
}

/** Parses a size. Bytes. */
function size(text: string): number {
  const [, amount = '', unit = 'none'] = /^(\d{1,12})(|KiB|MiB|GiB|TiB)$/.exec(text) ?? []
  const bytes = Number(amount) * (SIZES[unit] ?? 0)
  if (!(bytes > 0 && Number.isSafeInteger(bytes))) throw new Error('must be a size such as 500MiB or 1GiB')
  return bytes
}

/** Parses a kind of store, or the address of a shared one, which may hold a password. */
function storePlace(text: string): StoreText {
  const kind = STORE_KINDS.find((known) => known === text)
  if (kind !== undefined) return kind
  if (!isSharedAddress(text))
    throw new Error(`must be one of ${STORE_KINDS.join(', ')}, or like postgres://user@host/database`)
  // The constructor checks the rest.
  void new SharedStore(splitPassword(text).address)
  return text
}

/** Parses an absolute http(s) address to which paths are added. */
function webAddress(text: string): string {
  return withoutSlash(parseWebAddress(text))
}

function withoutSlash({ href }: URL): string {
  return href.replace(/\/+$/, '')
}

/** Parses an absolute http(s) address of a page, and returns it unchanged. */
function pageAddress(text: string): string {
  parseHttpUrl(text)
  return text
}

/** Parses an address to send to. `3000` and `localhost:3000/hooks` are on this machine. */
export function targetAddress(text: string): string {
  return pageAddress(expandLocal(text))
}

/** Makes a parser of several values, one a line. `check` throws an Error that explains an invalid value. */
function lines(check: (text: string) => unknown): (text: string) => readonly string[] {
  return (text) => {
    const values = linesOf(text)
    for (const value of values) check(value)
    return values
  }
}

function linesOf(text: string): readonly string[] {
  return text.split('\n').flatMap((line) => line.trim() || [])
}

/** Loads the senders, which are a third of what a command without sources loads. */
async function sourceTexts(text: string): Promise<readonly string[]> {
  const { checkSources } = await import('./sources.js')
  const texts = linesOf(text)
  checkSources(texts)
  return texts
}

function hostNames(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.every((name) => HOST_NAME.test(name))) return names
  throw new Error('must be host names, separated by commas')
}

function userId(text: string): string {
  try {
    return parseUserId(text)
  } catch {
    throw new Error('must be 1–256 bytes without white space, control characters or "/"')
  }
}
