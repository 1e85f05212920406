import { Hono } from 'hono'
import type { HttpEnv } from '../../http/body.js'
import { GitHubError } from '../github-error.js'
import { readObject } from '../rest/input.js'
import type { Clients } from './clients.js'
import type { AccessTokens } from './tokens.js'

export interface RevokeParts {
  readonly clients: Clients
  readonly tokens: AccessTokens
}

/** Revokes one access token for the application itself (https://docs.github.com/rest/apps/oauth-applications). */
export function revokeRoutes({ clients, tokens }: RevokeParts): Hono<HttpEnv> {
  return new Hono<HttpEnv>().delete('/api/v3/applications/:client/token', async (c) => {
    const client = clients.authenticate(...readBasic(c.req.header('authorization') ?? ''))
    if (!client) throw new GitHubError(401, 'Bad credentials')
    const { access_token: accessToken } = await readObject(c)
    if (c.req.param('client') !== client.id) throw new GitHubError(404, 'Not Found')
    if (typeof accessToken !== 'string' || accessToken === '') {
      throw new GitHubError(422, 'Validation Failed', [
        { resource: 'OauthAccess', code: 'missing_field', field: 'access_token' },
      ])
    }
    const grant = tokens.find(accessToken)
    if (grant?.clientId !== client.id) throw new GitHubError(404, 'Not Found')
    tokens.revoke(grant)
    return c.body(null, 204)
  })
}

/** Name and password of HTTP's Basic scheme (RFC 7617). */
function readBasic(header: string): [name: string, password: string] {
  const [, encoded = ''] = /^basic +(\S+)$/i.exec(header) ?? []
  const text = Buffer.from(encoded, 'base64').toString()
  const colon = text.indexOf(':')
  return [text.slice(0, Math.max(colon, 0)), text.slice(colon + 1)]
}
