import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { generateRandomState } from 'oauth4webapi'
import type { Clock } from '../base/time.js'
import type { Json, Store } from '../store/contract.js'

/** What is remembered of a sign-in while the user is at the provider. */
export type PendingSignIn = {
  readonly provider: string
  readonly origin: string
  readonly userId: string
  /** PKCE's code verifier (RFC 7636 section 4.1). */
  readonly verifier: string
  /** Repeated at the token endpoint as it was sent (RFC 6749 section 4.1.3), also when the settings change meanwhile. */
  readonly redirectUri: string
}

/** 10 minutes: as long as GitHub keeps an authorization code. */
export const STATE_LIFETIME = 600_000

/**
 * Remembers a sign-in for {@link STATE_LIFETIME} under a new state of 256 random bits, bound to the browser that
 * will hold the cookie's value; of that only a hash is kept.
 * @throws RelayError `storage`.
 */
export async function keepState(
  store: Store,
  pending: PendingSignIn,
  clock: Clock,
): Promise<{ state: string; cookie: string }> {
  const state = generateRandomState()
  const cookie = randomBytes(32).toString('base64url')
  const value = { ...pending, browser: digest(cookie).toString('hex') }
  await store.put(stateKey(state), value, { expiresAt: clock() + STATE_LIFETIME })
  return { state, cookie }
}

/**
 * Takes a remembered sign-in: it is gone afterwards, also when `cookie` shows that this is not the browser it began
 * in. Undefined then, and for a state that is unknown, used or expired.
 * @throws RelayError `storage`.
 */
export async function takeState(
  store: Store,
  state: string,
  cookie: string | undefined,
): Promise<PendingSignIn | undefined> {
  if (!STATE.test(state)) return undefined
  const kept = await store.take(stateKey(state))
  if (!isKept(kept) || cookie === undefined) return undefined
  const { browser, ...pending } = kept
  return sameHash(digest(cookie), browser) ? pending : undefined
}

/** 32 bytes in base64url. Anything else is no state of ours, and may be no key either. */
const STATE = /^[\w-]{43}$/

const FIELDS = ['provider', 'origin', 'userId', 'verifier', 'redirectUri', 'browser'] as const

function isKept(value: Json | undefined): value is PendingSignIn & { readonly browser: string } {
  const record = new Map(Object.entries(value ?? {}))
  return FIELDS.every((field) => typeof record.get(field) === 'string')
}

function stateKey(state: string): string {
  return `oauth-state:${state}`
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function sameHash(actual: Buffer, hex: string): boolean {
  const expected = Buffer.from(hex, 'hex')
  return expected.length === actual.length && timingSafeEqual(actual, expected)
}
