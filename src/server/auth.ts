import { Hono, type Context, type MiddlewareHandler } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { signOut } from '../auth/accounts.js'
import { beginSignIn, completeSignIn, type SignInOutcome, parseLogin } from '../auth/sign-in.js'
import { RelayError } from '../base/errors.js'
import type { HttpEnv } from '../http/body.js'
import { parseUserId } from '../base/settings.js'
import type { AppParts } from './parts.js'

/**
 * Routes of signing in and out.
 * GET /auth/{provider}: 302 to the provider | 400 userId missing or invalid, login invalid | 403 loaded by a page
 * instead of opened | 429 too many sign-ins begun | 503 no OAuth client, or a storage failure. `login` is the id under
 * which a waiting program finds the outcome.
 * GET /auth/{provider}/callback: always 302 to `baseUrl`, with the outcome added to the query.
 * DELETE /auth/token/:userId: 200, also when there was no token | 400 | 503.
 * In each path `provider` is an alias of the provider's own name.
 */
export function authRoutes({ signIn, baseUrl }: Pick<AppParts, 'signIn' | 'baseUrl'>) {
  const revoke = async (c: Context<HttpEnv>) => {
    const { pathname } = new URL(c.req.url)
    await signOut(signIn, parseUserId(decode(pathname.slice(pathname.lastIndexOf('/') + 1))))
    return c.json({ ok: true }, 200)
  }
  const { name: own } = signIn.host
  return new Hono<HttpEnv>()
    .on('GET', ['/auth/provider', `/auth/${own}`], noStore, async (c) => {
      // A page could load this address, for example as a picture, and fill the store with states (Fetch Metadata,
      // section 2.1).
      const destination = c.req.header('sec-fetch-dest') ?? 'document'
      if (destination !== 'document')
        throw new RelayError('forbidden', 'Sign-in starts by opening this address in a browser')
      const userId = queryUserId(c)
      const logins = queryValues(c, 'login')
      // Repeated values are joined, so that they fail with the same message as one invalid value.
      const login = logins.length === 0 ? undefined : parseLogin(logins.join(','))
      const { location, cookie } = await beginSignIn(signIn, userId, login)
      const { name, value, ...attributes } = cookie
      setCookie(c, name, value, { ...attributes, httpOnly: true, sameSite: 'Lax' })
      return c.redirect(location, 302)
    })
    .on('GET', ['/auth/provider/callback', `/auth/${own}/callback`], noStore, async (c) => {
      const { searchParams: query } = new URL(c.req.url)
      const { outcome, spent } = await completeSignIn(signIn, { query, cookies: getCookie(c) })
      for (const { name, path, secure } of spent) deleteCookie(c, name, { path, secure })
      return c.redirect(withOutcome(baseUrl(), outcome), 302)
    })
    .delete('/auth/token/:userId', noStore, revoke)
    .delete('/auth/token/', noStore, revoke)
}

/** Headers for personal responses: no cache stores them, and no later page learns the address. */
const noStore: MiddlewareHandler<HttpEnv> = async (c, next) => {
  await next()
  c.header('Cache-Control', 'no-store')
  c.header('Referrer-Policy', 'no-referrer')
}

/** @throws RelayError `bad_request`. */
function queryUserId(c: Context<HttpEnv>): string {
  const [given = '', ...more] = queryValues(c, 'userId')
  if (more.length > 0) throw new RelayError('bad_request', 'Invalid userId')
  if (given === '') throw new RelayError('bad_request', 'Missing userId')
  return parseUserId(decode(given.replaceAll('+', ' ')))
}

/** Returns all values of a query parameter as sent, not decoded. */
function queryValues(c: Context<HttpEnv>, name: 'userId' | 'login'): string[] {
  const { search } = new URL(c.req.url)
  const pairs = search.slice(1).split('&')
  return pairs
    .map((pair) => pair.split('='))
    .flatMap(([key, ...value]) => (key === name ? [value.join('=')] : []))
}

/**
 * Decodes a user id strictly. Hono and URLSearchParams keep what they cannot decode, so one user could have several
 * ids.
 * @throws RelayError `bad_request`
 */
function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new RelayError('bad_request', 'Invalid userId')
  }
}

/** Returns the address with the outcome added to its query. */
function withOutcome(baseUrl: string, outcome: SignInOutcome): string {
  const url = new URL(baseUrl)
  const query = new URLSearchParams({ ...outcome }).toString()
  url.search = url.search === '' ? query : `${url.search}&${query}`
  return url.href
}
