import { Hono } from 'hono'
import type { HttpEnv } from '../../http/body.js'
import type { Faults } from '../faults.js'
import { injectFault } from '../inject-fault.js'
import { OWNER } from '../seed.js'
import type { Client, Clients } from './clients.js'
import type { Codes } from './codes.js'
import type { DeviceCodes } from './device-codes.js'
import { failure, type Fields, readFields, respond } from './form.js'
import type { AccessTokens, Grant } from './tokens.js'

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

export interface TokenParts {
  readonly clients: Clients
  readonly codes: Codes
  readonly devices: DeviceCodes
  readonly tokens: AccessTokens
  readonly faults: Faults
}

/** Exchanges a code, a device code or a refresh token for an access token. */
export function tokenRoutes({ clients, codes, devices, tokens, faults }: TokenParts): Hono<HttpEnv> {
  return new Hono<HttpEnv>().post('/login/oauth/access_token', injectFault(faults, 'token'), async (c) =>
    respond(c, answer(await readFields(c))),
  )

  function answer(fields: URLSearchParams): Fields {
    if (fields.get('grant_type') === DEVICE_GRANT) return answerDevice(fields)
    const client = clients.authenticate(fields.get('client_id'), fields.get('client_secret'))
    if (!client) return failure('incorrect_client_credentials')
    switch (fields.get('grant_type') ?? 'authorization_code') {
      case 'authorization_code':
        return answerCode(client, fields)
      case 'refresh_token': {
        const grant = tokens.refresh(client, fields.get('refresh_token') ?? '')
        return grant ? tokenResponse(grant) : failure('bad_refresh_token')
      }
      default:
        return failure('unsupported_grant_type')
    }
  }

  function answerCode(client: Client, fields: URLSearchParams): Fields {
    const request = codes.redeem({
      clientId: client.id,
      code: fields.get('code') ?? '',
      redirectUri: fields.get('redirect_uri') ?? undefined,
      verifier: fields.get('code_verifier') ?? undefined,
    })
    return typeof request === 'string' ? failure(request) : issue(client, request.scopes)
  }

  /** An application without a secret of its own, such as a command, signs users in this way. */
  function answerDevice(fields: URLSearchParams): Fields {
    const client = clients.find(fields.get('client_id'))
    if (!client) return failure('incorrect_client_credentials')
    const outcome = devices.poll(client.id, fields.get('device_code') ?? '')
    if ('error' in outcome)
      return { ...failure(outcome.error), ...(outcome.interval && { interval: outcome.interval }) }
    return issue(client, outcome.scopes)
  }

  function issue(client: Client, scopes: readonly string[]): Fields {
    return tokenResponse(tokens.issue(client, OWNER, scopes))
  }
}

function tokenResponse({ accessToken, scopes, refresh }: Grant): Fields {
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
