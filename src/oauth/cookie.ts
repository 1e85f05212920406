import { createHash } from 'node:crypto'
import { STATE_LIFETIME } from './state.js'

/** What identifies a cookie to a browser, and is therefore needed to delete it. */
export interface CookieIdentity {
  readonly name: string
  /** Path of the callback: browsers send the cookie nowhere else. */
  readonly path: string
  readonly secure: boolean
}

/** Cookie that proves to the callback that this browser started the sign-in. */
export interface SignInCookie extends CookieIdentity {
  readonly value: string
  /** Seconds. */
  readonly maxAge: number
}

const PREFIX = 'relay_oauth_'

/** Sign-ins considered per callback, more than a person has open in a browser: each costs a read from the store. */
const MAX_SIGN_INS = 10

/** Selects the sign-in cookies, as name and value. */
export function signInCookies(cookies: Readonly<Record<string, string>>): (readonly [string, string])[] {
  return Object.entries(cookies)
    .filter(([name]) => name.startsWith(PREFIX))
    .slice(0, MAX_SIGN_INS)
}

/** Name of a sign-in's cookie. Each sign-in has its own, so that two in one browser do not conflict. */
export function cookieName(state: string): string {
  return `${PREFIX}${createHash('sha256').update(state).digest('hex').slice(0, 8)}`
}

export function cookieIdentity(name: string, redirectUri: string): CookieIdentity {
  const { pathname, protocol } = new URL(redirectUri)
  return { name, path: pathname, secure: protocol === 'https:' }
}

/** Cookie to set when a sign-in starts. It expires with the state. */
export function signInCookie(state: string, value: string, redirectUri: string): SignInCookie {
  return { ...cookieIdentity(cookieName(state), redirectUri), value, maxAge: STATE_LIFETIME / 1000 }
}
