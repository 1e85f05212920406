import type { Cancellable } from '../base/abort.js'
import { createLogThrottle } from '../base/log-throttle.js'
import type { Authorization } from './authorize.js'
import { callback, endedSignIns, type CallbackRequest } from './callback.js'
import { cookieIdentity, type CookieIdentity } from './cookie.js'
import type { Outcome } from './outcome.js'
import type { OAuthParts } from './parts.js'

/** Sign-in at the provider by authorization code (RFC 6749 section 4.1) with PKCE (RFC 7636). */
export interface OAuth {
  /**
   * Starts a sign-in. `login` is the nonce under which its outcome is published; see {@link awaitLogin}.
   * @throws RelayError `not_configured` without an OAuth client, `storage`.
   */
  authorize(userId: string, login?: string): Promise<Authorization>
  /** Completes a sign-in. Never throws. Of any number of callbacks with one state, one can succeed. */
  callback(request: CallbackRequest, options?: Cancellable): Promise<Outcome>
  /** Cookies to delete: those of the sign-ins that this callback ends. */
  spentCookies(request: CallbackRequest): CookieIdentity[]
}

export type OAuthOptions = Omit<OAuthParts, 'throttle'>

export function createOAuth(options: OAuthOptions): OAuth {
  const parts: OAuthParts = { ...options, throttle: createLogThrottle(options.log) }
  return {
    async authorize(userId, login) {
      // Loaded late, as the exchange is: most instances see no sign-in.
      const { authorize } = await import('./authorize.js')
      return authorize(parts, userId, login)
    },
    callback: (request, cancellable) => callback(parts, request, cancellable),
    spentCookies: (request) =>
      endedSignIns(request).map(({ name }) => cookieIdentity(name, parts.redirectUri())),
  }
}
