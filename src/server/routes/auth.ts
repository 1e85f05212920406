import { Hono, type Context, type MiddlewareHandler } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { RelayError } from '../../base/errors.js'
import type { HttpEnv } from '../../http/env.js'
import { parseLogin } from '../../oauth/login.js'
import type { OAuth } from '../../oauth/oauth.js'
import type { Outcome } from '../../oauth/outcome.js'
import type { Provider } from '../../providers/provider.js'
import type { Tokens } from '../../tokens/tokens.js'
import { parseUserId } from '../../tokens/user-id.js'

export interface AuthParts {
  readonly provider: Pick<Provider, 'name'>
  readonly oauth: OAuth
  readonly tokens: Pick<Tokens, 'revoke'>
  /** The application a browser returns to after signing in. */
  readonly baseUrl: () => string
}

/**
 * GET /auth/{provider}: 302 to the provider | 400 userId missing or invalid, login invalid | 403 loaded by a page, not
 * opened | 503 not configured, or not stored. `login` names where the outcome is left for the program that waits for it.
 * GET /auth/{provider}/callback: always 302 to the application, with the outcome added to the query.
 * DELETE /auth/token/:userId: 200, also when there was no token | 400 | 503.
 * `provider` stands for the provider's own name in each path.
 */
export function authRoutes({ provider, oauth, tokens, baseUrl }: AuthParts) {
  const revoke = async (c: Context<HttpEnv>) => {
    await tokens.revoke(pathUserId(c))
    return c.json({ ok: true }, 200)
  }
  const { name: own } = provider
  // The paths are written out in place, so that they are literal types and a typed client knows its routes.
  return new Hono<HttpEnv>()
    .on('GET', ['/auth/provider', `/auth/${own}`], privately, async (c) => {
      requireNavigation(c.req.header('sec-fetch-dest'))
      const { location, cookie } = await oauth.authorize(queryUserId(c), queryLogin(c))
      const { name, value, ...attributes } = cookie
      setCookie(c, name, value, { ...attributes, httpOnly: true, sameSite: 'Lax' })
      return c.redirect(location, 302)
    })
    .on('GET', ['/auth/provider/callback', `/auth/${own}/callback`], privately, async (c) => {
      const query = new URL(c.req.url).searchParams
      const outcome = await oauth.callback({ query, cookie: (name) => getCookie(c, name) })
      const { name, ...place } = oauth.cookie(query.get('state') ?? '')
      if (getCookie(c, name) !== undefined) deleteCookie(c, name, place)
      return c.redirect(withOutcome(baseUrl(), outcome), 302)
    })
    .delete('/auth/token/:userId', privately, revoke)
    .delete('/auth/token/', privately, revoke)
}

/**
 * Every start stores a state: a page that loads the address as a picture, over and over, must not fill the store.
 * Browsers say what they want a response for (Fetch Metadata, section 2.1); other clients say nothing.
 * @throws RelayError `forbidden`.
 */
function requireNavigation(destination: string | undefined): void {
  if (destination !== undefined && destination !== 'document') {
    throw new RelayError('forbidden', 'Sign-in starts by opening this address in a browser')
  }
}

/** What passes here is nobody else's: no cache keeps it, and no later page learns the address. */
const privately: MiddlewareHandler<HttpEnv> = async (c, next) => {
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

/** @throws RelayError `bad_request`. */
function queryLogin(c: Context<HttpEnv>): string | undefined {
  const given = queryValues(c, 'login')
  // Two joined by a comma are no login, so both fail in the same words.
  return given.length === 0 ? undefined : parseLogin(given.join(','))
}

/** As they were written: nothing decoded. */
function queryValues(c: Context<HttpEnv>, name: 'userId' | 'login'): string[] {
  const { search } = new URL(c.req.url)
  const pairs = search.slice(1).split('&')
  return pairs
    .map((pair) => pair.split('='))
    .flatMap(([key, ...value]) => (key === name ? [value.join('=')] : []))
}

/** @throws RelayError `bad_request`. */
function pathUserId(c: Context<HttpEnv>): string {
  const { pathname } = new URL(c.req.url)
  return parseUserId(decode(pathname.slice(pathname.lastIndexOf('/') + 1)))
}

/** Strictly: hono and URLSearchParams let what they cannot decode pass, so that one user could have several names. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new RelayError('bad_request', 'Invalid userId')
  }
}

/** Adds to the query and leaves the rest of the address as it was written. */
function withOutcome(baseUrl: string, outcome: Outcome): string {
  const url = new URL(baseUrl)
  const query = new URLSearchParams({ ...outcome }).toString()
  url.search = url.search === '' ? query : `${url.search}&${query}`
  return url.href
}
