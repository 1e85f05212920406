import { STORE_KINDS, type StoreText } from '../../base/settings.js'
import { isSharedAddress, SharedStore, splitPassword } from '../../base/shared-store.js'
import { parseDuration } from '../../base/time.js'
import { expandLocal, parseHttpUrl, parsePrivateAddress, parseWebAddress } from '../../base/web-address.js'
import { parseUserId } from '../../base/user-id.js'

// Parsers of the text of a setting. Each throws an Error whose message completes "<name>: …" and never repeats the text: it
// can be a secret in the wrong place.

export function oneOf<Name extends string>(names: readonly Name[]): (text: string) => Name {
  return (text) => {
    const found = names.find((name) => name === text)
    if (found === undefined) throw new Error(`must be one of ${names.join(', ')}`)
    return found
  }
}

export function matching(pattern: RegExp, description: string): (text: string) => string {
  return (text) => {
    if (!pattern.test(text)) throw new Error(`must be ${description}`)
    return text
  }
}

export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= min && value <= max)) throw new Error(`must be a whole number from ${min} to ${max}`)
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

/** A kind of store, or the address of a shared one, which may hold a password. */
export function storePlace(text: string): StoreText {
  const kind = STORE_KINDS.find((known) => known === text)
  if (kind !== undefined) return kind
  if (!isSharedAddress(text))
    throw new Error(`must be one of ${STORE_KINDS.join(', ')}, or like postgres://user@host/database`)
  // Checks the rest.
  void new SharedStore(splitPassword(text).address)
  return text
}

/** 32 bytes in base64. */
export function encryptionKey(text: string): string {
  if (!/^[A-Za-z0-9+/]{43}=$/.test(text))
    throw new Error('must be 32 bytes in base64: openssl rand -base64 32')
  return text
}

/** An absolute http(s) address to which paths are added; returned without a trailing slash. */
export function webAddress(text: string): string {
  return parseWebAddress(text).href.replace(/\/+$/, '')
}

/** The same for an address that deliveries come from: https, unless on this machine. */
export function privateAddress(text: string): string {
  return parsePrivateAddress(text).href.replace(/\/+$/, '')
}

/** An absolute http(s) address of a page, as it was written. */
export function pageAddress(text: string): string {
  parseHttpUrl(text)
  return text
}

/** An address to send to; `3000` and `localhost:3000/hooks` are on this machine. */
export function targetAddress(text: string): string {
  return pageAddress(expandLocal(text))
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

/** In the largest unit that gives a whole number. */
export function formatSize(bytes: number): string {
  const units = Object.entries(SIZES).toReversed()
  const [unit = '', one = 1] = units.find(([, one]) => bytes % one === 0) ?? []
  return `${bytes / one}${unit}`
}

/** Several values, one a line. `check` throws an Error that says what is wrong with one. */
export function lines(check: (text: string) => unknown): (text: string) => readonly string[] {
  return (text) => {
    const values = text.split('\n').flatMap((line) => line.trim() || [])
    for (const value of values) check(value)
    return values
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
