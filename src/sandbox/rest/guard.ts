import { randomBytes } from 'node:crypto'
import type { Context, MiddlewareHandler } from 'hono'
import type { Clock } from '../../base/time.js'
import { GitHubError } from '../github-error.js'
import type { AccessTokens } from '../oauth/tokens.js'
import type { RestEnv } from './env.js'

/** What GitHub gives a user per hour. Shown, never enforced: running out is a fault, set on purpose. */
const RATE_LIMIT = 5000
const HOUR_S = 3600

/** The scopes of which one is needed to write to a public repository. */
const WRITE_SCOPES = ['public_repo', 'repo']

/** Sets the headers every answer of the REST API carries, and lets only live bearer tokens through. */
export function guard(tokens: AccessTokens, clock: Clock): MiddlewareHandler<RestEnv> {
  return async function guard(c, next) {
    describe(c, clock)
    if (!c.req.header('user-agent')) {
      throw new GitHubError(
        403,
        'Request forbidden by administrative rules. Please make sure your request has a User-Agent header.',
      )
    }
    const [, token] = /^(?:bearer|token) +(\S+) *$/i.exec(c.req.header('authorization') ?? '') ?? []
    if (token === undefined) throw new GitHubError(401, 'Requires authentication')
    const grant = tokens.find(token)
    if (!grant) throw new GitHubError(401, 'Bad credentials')
    c.header('X-OAuth-Scopes', grant.scopes.join(', '))
    c.header('X-OAuth-Client-Id', grant.clientId)
    c.set('grant', grant)
    await next()
  }
}

/** A token that may only read is told what GitHub tells it: that there is nothing here. */
export const mayWrite: MiddlewareHandler<RestEnv> = async function mayWrite(c, next) {
  c.header('X-Accepted-OAuth-Scopes', WRITE_SCOPES.join(', '))
  if (!c.get('grant').scopes.some((scope) => WRITE_SCOPES.includes(scope)))
    throw new GitHubError(404, 'Not Found')
  await next()
}

function describe(c: Context, clock: Clock): void {
  const reset = (Math.floor(clock() / 1000 / HOUR_S) + 1) * HOUR_S
  const headers = {
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
