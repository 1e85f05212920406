import type { Expiry, Json } from './contract.js'

/** A record as a keychain keeps it, as text: the value, and with it when it ends. */
interface Sealed {
  readonly v: 1
  readonly value: Json
  /** Missing: it stays. JSON makes null of what is no number. */
  readonly expiresAt?: number | null
}

export interface Unsealed {
  readonly value: Json
  readonly expiresAt: number
}

export function seal(value: Json, { expiresAt = Infinity }: Expiry = {}): string {
  const sealed: Sealed = expiresAt === Infinity ? { v: 1, value } : { v: 1, value, expiresAt }
  return JSON.stringify(sealed)
}

/** Undefined for a text that is no record of ours: anyone can put an entry into a keychain. */
export function unseal(text: string | undefined): Unsealed | undefined {
  const sealed = parse(text)
  if (!isSealed(sealed)) return undefined
  const { value, expiresAt = Infinity } = sealed
  return { value, expiresAt: typeof expiresAt === 'number' ? expiresAt : -Infinity }
}

function parse(text = ''): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isSealed(thing: unknown): thing is Sealed {
  return typeof thing === 'object' && thing !== null && 'v' in thing && thing.v === 1 && 'value' in thing
}
