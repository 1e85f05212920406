import { randomBytes } from 'node:crypto'
import type { Context, MiddlewareHandler } from 'hono'
import type { Clock } from '../../base/time.js'
import { GitHubError } from '../github-error.js'
import { permits } from '../oauth/permissions.js'
import type { AccessTokens } from '../oauth/tokens.js'
import type { RestEnv } from './env.js'

/** Version of GitHub Enterprise Server that the sandbox emulates. */
export const SERVER_VERSION = '3.17.0'

/** GitHub's requests per user and hour. Shown but not enforced: exceeding it is a fault, set on purpose. */
const RATE_LIMIT = 5000
const HOUR_S = 3600

/** Scopes that allow writing to a public repository; one is enough. */
const WRITE_SCOPES = ['public_repo', 'repo']

/** Middleware that sets the common response headers and requires a valid bearer token. */
export function guard(tokens: AccessTokens, clock: Clock): MiddlewareHandler<RestEnv> {
  return async function guard(c, next) {
    setCommonHeaders(c, clock)
    if (!c.req.header('user-agent')) {
      throw new GitHubError(
        403,
        'Request forbidden by administrative rules. Please make sure your request has a User-Agent header.',
      )
    }
    const grant = tokens.find(bearerOf(c))
    if (!grant) throw new GitHubError(401, 'Bad credentials')
    if (grant.permissions === undefined) c.header('X-OAuth-Scopes', grant.scopes.join(', '))
    if (grant.clientId !== undefined) c.header('X-OAuth-Client-Id', grant.clientId)
    c.set('grant', grant)
    await next()
  }
}

/** What a route requires: one of these scopes, or this permission of a fine-grained token. */
export interface Requirement {
  readonly scopes: (method: string) => readonly string[]
  readonly permission: string
}

/**
 * Middleware that requires a right for the request's method. Without it the response is 404, like GitHub's, or 403 for a
 * fine-grained token (https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api).
 */
export function requires({ scopes, permission }: Requirement): MiddlewareHandler<RestEnv> {
  return async function requires(c, next) {
    const grant = c.get('grant')
    if (grant.permissions) {
      const access = c.req.method === 'GET' ? 'read' : 'write'
      if (permits(grant.permissions(), permission, access)) return next()
      c.header('X-Accepted-GitHub-Permissions', `${permission}=${access}`)
      const kind = grant.clientId === undefined ? 'personal access token' : 'integration'
      throw new GitHubError(403, `Resource not accessible by ${kind}`)
    }
    const accepted = scopes(c.req.method)
    c.header('X-Accepted-OAuth-Scopes', accepted.join(', '))
    if (!grant.scopes.some((scope) => accepted.includes(scope))) throw new GitHubError(404, 'Not Found')
    return next()
  }
}

/** Middleware that requires the right to write to a public repository: a scope, or this permission. */
export function mayWrite(permission: string): MiddlewareHandler<RestEnv> {
  return requires({ scopes: () => WRITE_SCOPES, permission })
}

/** The request's bearer token. @throws GitHubError 401 without one */
export function bearerOf(c: Pick<Context, 'req'>): string {
  const [, token] = /^(?:bearer|token) +(\S+) *$/i.exec(c.req.header('authorization') ?? '') ?? []
  if (token === undefined) throw new GitHubError(401, 'Requires authentication')
  return token
}

/** Sets the headers that every response of the REST API has. */
export function setCommonHeaders(c: Context, clock: Clock): void {
  const reset = (Math.floor(clock() / 1000 / HOUR_S) + 1) * HOUR_S
  const headers = {
    'X-GitHub-Enterprise-Version': `enterprise-server@${SERVER_VERSION}`,
    'X-GitHub-Request-Id': randomBytes(8).toString('hex').toUpperCase(),
    'X-GitHub-Media-Type': 'github.v3; format=json',
    'X-GitHub-Api-Version-Selected': '2022-11-28',
    'X-RateLimit-Limit': String(RATE_LIMIT),
    'X-RateLimit-Remaining': String(RATE_LIMIT - 1),
    'X-RateLimit-Used': '1',
    'X-RateLimit-Reset': String(reset),
    'X-RateLimit-Resource': 'core',
  }
  for (const [name, value] of Object.entries(headers)) c.header(name, value)
}
