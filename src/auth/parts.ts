import { createLogThrottle } from '../base/log.js'
import type { RenewParts } from './renew.js'
import type { SignInParts } from './sign-in.js'
import { SignInLimiter } from './starts.js'

/** Parts that sign users in and renew tokens. */
export type SignIn = SignInParts & RenewParts

/**
 * Makes the parts of a sign-in, with limits of its own.
 * @param publicUrl the address at which browsers reach the callback
 */
export function createSignIn(
  parts: Omit<SignIn, 'redirectUri' | 'throttle' | 'starts'>,
  publicUrl: () => string,
): SignIn {
  return {
    ...parts,
    redirectUri: () => callbackUrl(publicUrl(), parts.host.name),
    throttle: createLogThrottle(parts.log),
    starts: new SignInLimiter(),
  }
}

/** Returns the address of the callback, as registered at the code host. */
export function callbackUrl(publicUrl: string, provider: string): string {
  return `${publicUrl}/auth/${provider}/callback`
}
