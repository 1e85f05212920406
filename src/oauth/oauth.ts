import type { Cancellable } from '../base/abort.js'
import { systemClock } from '../base/time.js'
import { outboundFetch } from '../providers/fetch.js'
import { authorize, type Authorization } from './authorize.js'
import { callback, type CallbackRequest } from './callback.js'
import { cookiePlace, type CookiePlace } from './cookie.js'
import type { Outcome } from './outcome.js'
import type { OAuthParts } from './parts.js'

/** Signing in at the provider, with the authorization code grant (RFC 6749 section 4.1) and PKCE (RFC 7636). */
export interface OAuth {
  /**
   * `login` names where to leave the outcome; see {@link awaitLogin}.
   * @throws RelayError `not_configured` without an OAuth client, `storage`.
   */
  authorize(userId: string, login?: string): Promise<Authorization>
  /** Never throws. Of any number of callbacks with one state, one can succeed. */
  callback(request: CallbackRequest, options?: Cancellable): Promise<Outcome>
  /** The cookie of the sign-in with that state, to be deleted at the callback. */
  cookie(state: string): CookiePlace
}

type Defaulted = 'clock' | 'fetch' | 'exchangeTimeout'
export type OAuthOptions = Omit<OAuthParts, Defaulted> & Partial<Pick<OAuthParts, Defaulted>>

/** 10 s for the whole call to the token endpoint: a person waits in front of a blank page. */
const EXCHANGE_TIMEOUT = 10_000

export function createOAuth(options: OAuthOptions): OAuth {
  const defaults = { clock: systemClock, fetch: outboundFetch, exchangeTimeout: EXCHANGE_TIMEOUT }
  const parts: OAuthParts = { ...defaults, ...options }
  return {
    authorize: (userId, login) => authorize(parts, userId, login),
    callback: (request, cancellable) => callback(parts, request, cancellable),
    cookie: (state) => cookiePlace(state, parts.redirectUri()),
  }
}
