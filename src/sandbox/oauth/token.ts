import { Hono, type Context } from 'hono'
import type { Secret } from '../../base/secret.js'
import { readBody } from '../../http/body.js'
import type { HttpEnv } from '../../http/env.js'
import type { Faults } from '../faults.js'
import { injectFault } from '../inject-fault.js'
import { OWNER } from '../seed.js'
import type { Codes } from './codes.js'
import { sameSecret } from './secrets.js'
import type { AccessTokens, Grant } from './tokens.js'

/** Body limit of a token request, which has a few short fields. */
const FORM_LIMIT = 65_536

/** GitHub's texts for failed token requests, all with status 200. */
const FAILURES = {
  bad_verification_code: 'The code passed is incorrect or expired.',
  incorrect_client_credentials: 'The client_id and/or client_secret passed are incorrect.',
  redirect_uri_mismatch: 'The redirect_uri MUST match the registered callback URL for this application.',
  bad_refresh_token: 'The refresh token passed is incorrect or expired.',
  unsupported_grant_type: 'The grant type is not supported.',
} as const

type Failure = keyof typeof FAILURES

export interface TokenParts {
  readonly clientId: string
  readonly clientSecret: Secret
  readonly codes: Codes
  readonly tokens: AccessTokens
  readonly faults: Faults
}

/** Exchanges a code, or a refresh token, for an access token. */
export function tokenRoutes({ clientId, clientSecret, codes, tokens, faults }: TokenParts): Hono<HttpEnv> {
  return new Hono<HttpEnv>().post('/login/oauth/access_token', injectFault(faults, 'token'), async (c) => {
    const outcome = grant(await readFields(c))
    return respond(c, typeof outcome === 'string' ? failure(outcome) : tokenResponse(outcome))
  })

  function grant(fields: URLSearchParams): Grant | Failure {
    const secretMatches = sameSecret(fields.get('client_secret') ?? '', clientSecret.reveal())
    if (fields.get('client_id') !== clientId || !secretMatches) return 'incorrect_client_credentials'
    switch (fields.get('grant_type') ?? 'authorization_code') {
      case 'authorization_code':
        return exchange(fields)
      case 'refresh_token':
        return tokens.refresh(clientId, fields.get('refresh_token') ?? '') ?? 'bad_refresh_token'
      default:
        return 'unsupported_grant_type'
    }
  }

  function exchange(fields: URLSearchParams): Grant | Failure {
    const request = codes.redeem({
      clientId,
      code: fields.get('code') ?? '',
      redirectUri: fields.get('redirect_uri') ?? undefined,
      verifier: fields.get('code_verifier') ?? undefined,
    })
    return typeof request === 'string'
      ? request
      : tokens.issue({ clientId, login: OWNER, scopes: request.scopes })
  }
}

/** Reads a form or a JSON object, the two encodings that GitHub accepts. Anything else has no fields. */
async function readFields(c: Context<HttpEnv>): Promise<URLSearchParams> {
  const text = new TextDecoder().decode(await readBody(c, FORM_LIMIT))
  if (!/^application\/json\b/i.test(c.req.header('content-type') ?? '')) return new URLSearchParams(text)
  return toFields(parseObject(text))
}

function parseObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

function toFields(object: object): URLSearchParams {
  return new URLSearchParams(
    Object.entries(object).map(([name, value]): [string, string] => [name, String(value)]),
  )
}

function tokenResponse({ accessToken, scopes, refresh }: Grant): Record<string, string | number> {
  const response = { access_token: accessToken, scope: scopes.join(','), token_type: 'bearer' }
  if (!refresh) return response
  const { token, lifetimes } = refresh
  return {
    ...response,
    expires_in: lifetimes.access,
    refresh_token: token,
    refresh_token_expires_in: lifetimes.refresh,
  }
}

function failure(error: Failure): Record<string, string> {
  return {
    error,
    error_description: FAILURES[error],
    error_uri:
      'https://docs.github.com/apps/managing-oauth-apps/troubleshooting-oauth-app-access-token-request-errors/',
  }
}

/** Sends a form, or JSON if `Accept` names it, like GitHub. */
function respond(c: Context, fields: Record<string, string | number>): Response {
  c.header('Cache-Control', 'no-store')
  if (c.req.header('accept')?.includes('application/json')) return c.json(fields)
  c.header('Content-Type', 'application/x-www-form-urlencoded; charset=utf-8')
  return c.body(toFields(fields).toString())
}
