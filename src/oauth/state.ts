import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { generateRandomState } from 'oauth4webapi'
import { z } from 'zod'
import type { Clock } from '../base/time.js'
import type { Store } from '../store/contract.js'

/** What is remembered of a sign-in while the user is at the provider. */
export type PendingSignIn = {
  readonly provider: string
  readonly origin: string
  readonly userId: string
  /** PKCE's code verifier (RFC 7636 section 4.1). */
  readonly verifier: string
  /** Repeated at the token endpoint as it was sent (RFC 6749 section 4.1.3), also when the settings change meanwhile. */
  readonly redirectUri: string
  /** Under which name the outcome is to be left for who began it; see `login.ts`. */
  readonly login?: string | undefined
}

/** A remembered sign-in that has had its chance. */
export interface TakenSignIn {
  readonly pending: PendingSignIn
  /** Whether the callback came from the browser in which it began. */
  readonly sameBrowser: boolean
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
  const { login, ...rest } = pending
  const browser = digest(cookie).toString('hex')
  const value = { ...rest, browser, ...(login !== undefined && { login }) }
  await store.put(stateKey(state), value, { expiresAt: clock() + STATE_LIFETIME })
  return { state, cookie }
}

/**
 * Takes a remembered sign-in: it is gone afterwards, also when `cookie` does not show the browser it began in. Undefined for
 * a state that is unknown, used or expired.
 * @throws RelayError `storage`.
 */
export async function takeState(
  store: Store,
  state: string,
  cookie: string | undefined,
): Promise<TakenSignIn | undefined> {
  if (!STATE.test(state)) return undefined
  const kept = keptSchema.safeParse(await store.take(stateKey(state))).data
  if (!kept) return undefined
  const { browser, ...pending } = kept
  return { pending, sameBrowser: cookie !== undefined && sameHash(digest(cookie), browser) }
}

/** 32 bytes in base64url. Anything else is no state of ours, and may be no key either. */
const STATE = /^[\w-]{43}$/

const keptSchema = z.object({
  provider: z.string(),
  origin: z.string(),
  userId: z.string(),
  verifier: z.string(),
  redirectUri: z.string(),
  login: z.string().optional(),
  browser: z.string(),
})

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
