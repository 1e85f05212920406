import type { Context, MiddlewareHandler } from 'hono'
import { getCookie } from 'hono/cookie'
import { parseUrl } from '../base/address.js'
import { RelayError } from '../base/errors.js'
import type { HttpEnv } from '../http/body.js'
import type { Access } from './access.js'
import type { AssetPaths } from './document.js'
import { accessPage } from './open-page.js'

/** The header with the key that every change needs. */
const KEY_HEADER = 'X-Relay-Key'

/** Headers of every answer: own files only, no frame, no other window with a hold on this one, no copy in a cache. */
const HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src data: 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
}

/** Adds the headers of every answer, except those that it has already. */
export const withSafeHeaders: MiddlewareHandler<HttpEnv> = async (c, next) => {
  await next()
  const { headers } = c.res
  for (const [name, value] of Object.entries(HEADERS)) if (!headers.has(name)) headers.set(name, value)
}

/** Lets only browsers read that opened the inspector with a code. Others get 401, and a page that says how. */
export function requireCookie(access: Access, assets: AssetPaths): MiddlewareHandler<HttpEnv> {
  return async (c, next) => {
    if (access.mayRead(cookieOf(c))) return next()
    const wantsPage = c.req.method === 'GET' && (c.req.header('accept') ?? '').includes('text/html')
    if (wantsPage) return c.html(accessPage(assets, { entry: entryOf(c.req.path) }), 401)
    throw new RelayError('unauthenticated', 'Not open in this browser: run relay inspect')
  }
}

/** The number in the address of one delivery's page, which is shown once the inspector is open. */
function entryOf(path: string): string | undefined {
  return /^\/inspect\/deliveries\/(\d{1,15}|last)$/.exec(path)?.[1]
}

/**
 * Lets only this page's own scripts change something: they have the key, and their requests this page's origin.
 * @throws RelayError `forbidden`
 */
export function requireKey(access: Access): MiddlewareHandler<HttpEnv> {
  return (c, next) => {
    if (!isSameOrigin(c)) throw new RelayError('forbidden', 'This request came from another page')
    if (!access.mayChange(cookieOf(c), c.req.header(KEY_HEADER)))
      throw new RelayError('forbidden', 'This tab may only read: run relay inspect to change something')
    return next()
  }
}

/** Whether the request names as its origin the address that it was sent to. */
export function isSameOrigin(c: Context<HttpEnv>): boolean {
  const origin = c.req.header('origin') ?? ''
  return parseUrl(origin)?.host === addressOf(c).host
}

/** The name of the session's cookie: cookies know no ports, so it says which relay of this machine it is for. */
export function cookieName(c: Context<HttpEnv>): string {
  return `relay_inspect_${addressOf(c).port || '80'}`
}

/** The session's cookie. */
export function cookieOf(c: Context<HttpEnv>): string | undefined {
  return getCookie(c, cookieName(c))
}

function addressOf(c: Context<HttpEnv>): URL {
  return new URL(c.req.url)
}
