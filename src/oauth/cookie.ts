import { createHash } from 'node:crypto'
import { STATE_LIFETIME } from './state.js'

/** What names a cookie to a browser, and so what is needed to delete it. */
export interface CookiePlace {
  readonly name: string
  /** Only the callback gets it. */
  readonly path: string
  readonly secure: boolean
}

/** The cookie that shows at the callback that this is the browser in which the sign-in began. */
export interface SignInCookie extends CookiePlace {
  readonly value: string
  /** In seconds. */
  readonly maxAge: number
}

/** Each sign-in has a cookie of its own, so that two at once in one browser do not disturb each other. */
export function cookieName(state: string): string {
  return `relay_oauth_${createHash('sha256').update(state).digest('hex').slice(0, 8)}`
}

export function cookiePlace(state: string, redirectUri: string): CookiePlace {
  const { pathname, protocol } = new URL(redirectUri)
  return { name: cookieName(state), path: pathname, secure: protocol === 'https:' }
}

/** The cookie to set when a sign-in begins; it lives as long as the state. */
export function signInCookie(state: string, value: string, redirectUri: string): SignInCookie {
  return { ...cookiePlace(state, redirectUri), value, maxAge: STATE_LIFETIME / 1000 }
}
