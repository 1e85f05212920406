import { Hono } from 'hono'
import type { Secret } from '../../base/secret.js'
import type { HttpEnv } from '../../http/env.js'
import { GitHubError } from '../github-error.js'
import { readObject } from '../rest/input.js'
import { sameSecret } from './secrets.js'
import type { AccessTokens } from './tokens.js'

export interface RevokeParts {
  readonly clientId: string
  readonly clientSecret: Secret
  readonly tokens: AccessTokens
}

/** Revokes one access token for the application itself (https://docs.github.com/rest/apps/oauth-applications). */
export function revokeRoutes({ clientId, clientSecret, tokens }: RevokeParts): Hono<HttpEnv> {
  return new Hono<HttpEnv>().delete('/api/v3/applications/:client/token', async (c) => {
    const expected = `Basic ${Buffer.from(`${clientId}:${clientSecret.reveal()}`).toString('base64')}`
    if (!sameSecret(c.req.header('authorization') ?? '', expected))
      throw new GitHubError(401, 'Bad credentials')
    const { access_token: accessToken } = await readObject(c)
    if (c.req.param('client') !== clientId) throw new GitHubError(404, 'Not Found')
    if (typeof accessToken !== 'string' || accessToken === '') {
      throw new GitHubError(422, 'Validation Failed', [
        { resource: 'OauthAccess', code: 'missing_field', field: 'access_token' },
      ])
    }
    const grant = tokens.find(accessToken)
    if (!grant) throw new GitHubError(404, 'Not Found')
    tokens.revoke(grant)
    return c.body(null, 204)
  })
}
