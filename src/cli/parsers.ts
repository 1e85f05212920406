import { isLoopback } from '../base/loopback.js'
import { parseDuration } from '../base/time.js'
import { parseUserId } from '../tokens/user-id.js'

// How the text of a setting becomes its value. Each throws an Error whose message completes "<name>: …"; none of them
// repeats the text, which may be a secret in the wrong place.

export function oneOf<Name extends string>(names: readonly Name[]): (text: string) => Name {
  return (text) => {
    const found = names.find((name) => name === text)
    if (found === undefined) throw new Error(`must be one of ${names.join(', ')}`)
    return found
  }
}

export function matching(pattern: RegExp, wanted: string): (text: string) => string {
  return (text) => {
    if (!pattern.test(text)) throw new Error(`must be ${wanted}`)
    return text
  }
}

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= least && value <= most)) throw new Error(`must be a whole number from ${least} to ${most}`)
    return value
  }
}

export const port = wholeNumber(0, 65_535)

/** Milliseconds. */
export function duration(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw new Error('must be a duration such as 12h or 30d')
  return ms
}

/** An absolute http(s) address under which paths lie; what comes back has no trailing slash. */
export function webAddress(text: string): string {
  const url = httpUrl(text)
  if (url.search || url.hash) throw new Error('must not hold a query or a fragment')
  return url.href.replace(/\/+$/, '')
}

/** The same for one that deliveries come from, which nobody on the way should read: https, unless on this machine. */
export function privateAddress(text: string): string {
  const address = webAddress(text)
  const { protocol, hostname } = new URL(address)
  if (protocol === 'http:' && !isLoopback(hostname))
    throw new Error('must be https, unless it is on this machine')
  return address
}

/** An absolute http(s) address of a page, as it was written. */
export function pageAddress(text: string): string {
  httpUrl(text)
  return text
}

function httpUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    throw new Error('must be an absolute http:// or https:// address')
  if (url.username || url.password) throw new Error('must not hold a user name or password')
  return url
}

const SIZES: Readonly<Record<string, number>> = {
  '': 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
}

/** Bytes. */
export function size(text: string): number {
  const [, amount = '', unit = 'none'] = /^(\d{1,12})(|KiB|MiB|GiB|TiB)$/.exec(text) ?? []
  const bytes = Number(amount) * (SIZES[unit] ?? 0)
  if (!(bytes > 0 && Number.isSafeInteger(bytes))) throw new Error('must be a size such as 500MiB or 1GiB')
  return bytes
}

/** The largest unit that says it whole. */
export function formatSize(bytes: number): string {
  const units = Object.entries(SIZES).toReversed()
  const [unit = '', one = 1] = units.find(([, one]) => bytes % one === 0) ?? []
  return `${bytes / one}${unit}`
}

/** Several, one a line; each is checked by `check`, which throws an Error that says what is wrong with it. */
export function lines(check: (text: string) => unknown): (text: string) => readonly string[] {
  return (text) => {
    const given = text.split('\n').map((line) => line.trim())
    const wanted = given.filter((line) => line !== '')
    for (const line of wanted) check(line)
    return wanted
  }
}

export function hostNames(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.some((name) => !/^[A-Za-z0-9._-]{1,255}$/.test(name)))
    throw new Error('must be host names, separated by commas')
  return names
}

export function userId(text: string): string {
  try {
    return parseUserId(text)
  } catch {
    throw new Error('must be 1–256 bytes without white space, control characters or "/"')
  }
}

export const anyText = (text: string): string => text
