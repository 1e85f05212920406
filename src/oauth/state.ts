import { createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { Clock } from '../base/time.js'
import type { Store } from '../store/kv.js'

/** Record of a sign-in while the user is at the provider. */
export type PendingSignIn = Readonly<z.infer<typeof pendingSignIn>>

const pendingSignIn = z.object({
  provider: z.string(),
  origin: z.string(),
  userId: z.string(),
  /** PKCE code verifier (RFC 7636 section 4.1). */
  verifier: z.string(),
  /** Sent unchanged to the token endpoint (RFC 6749 section 4.1.3), even if the settings change meanwhile. */
  redirectUri: z.string(),
  /** Nonce under which to publish the outcome; see `login.ts`. */
  login: z.string().optional(),
})

/** A pending sign-in whose state has been used up. */
export interface TakenSignIn {
  readonly pending: PendingSignIn
  /** Whether the callback came from the browser that started it. */
  readonly sameBrowser: boolean
}

/** 10 minutes in milliseconds: the lifetime of GitHub's authorization codes. */
export const STATE_LIFETIME = 600_000

/**
 * Stores a pending sign-in for {@link STATE_LIFETIME} under a new state, the hash of the cookie's 256 random bits (RFC 6749
 * section 10.12). The state does not reveal the cookie, but the cookie alone finds the sign-in.
 * @throws RelayError `storage`.
 */
export async function saveState(
  store: Store,
  pending: PendingSignIn,
  clock: Clock,
): Promise<{ state: string; cookie: string }> {
  const cookie = randomBytes(32).toString('base64url')
  const state = stateOf(cookie)
  const { login, ...rest } = pending
  const value = { ...rest, ...(login !== undefined && { login }) }
  await store.put(stateKey(state), value, clock() + STATE_LIFETIME)
  return { state, cookie }
}

/**
 * Takes a pending sign-in, which uses up its state even if `cookie` is not that of the browser that started it. Undefined
 * for a state that is unknown, used or expired.
 * @throws RelayError `storage`.
 */
export async function takeState(
  store: Store,
  state: string,
  cookie: string | undefined,
): Promise<TakenSignIn | undefined> {
  if (!STATE.test(state)) return undefined
  const pending = pendingSignIn.safeParse(await store.take(stateKey(state))).data
  return pending && { pending, sameBrowser: cookie !== undefined && stateOf(cookie) === state }
}

/** State that belongs to a cookie: SHA-256 of the cookie's value, base64url. */
export function stateOf(cookie: string): string {
  return createHash('sha256').update(cookie).digest('base64url')
}

/** 32 bytes in base64url. Anything else is not a state, and may not be a valid store key. */
const STATE = /^[\w-]{43}$/

function stateKey(state: string): string {
  return `oauth-state:${state}`
}
