import { parseUrl } from '../../base/parse-url.js'
import { isLoopback } from '../../base/loopback.js'
import type { Clients } from './clients.js'
import type { AuthorizeRequest } from './codes.js'

/** Error of an authorize request, and who receives it: the user, or the application at its redirect URI. */
export type Refusal =
  | { readonly to: 'user'; readonly status: 400 | 404; readonly why: string }
  | {
      readonly to: 'app'
      readonly error: 'invalid_request' | 'unsupported_response_type'
      readonly why: string
      readonly request: AuthorizeRequest
    }

/**
 * Checks the query of an authorize request. An invalid client id or redirect URI is shown to the user and not sent to the
 * application (RFC 6749 section 4.1.2.1): a redirect there would be an open redirect.
 */
export function readAuthorizeRequest(query: URLSearchParams, clients: Clients): AuthorizeRequest | Refusal {
  const twice = [...new Set(query.keys())].find((name) => query.getAll(name).length > 1)
  if (twice !== undefined) return toUser(400, 'A parameter of this address is given twice.')
  const client = clients.find(query.get('client_id'))
  if (!client) return toUser(404, 'No application has this client id.')
  const redirectUri = query.get('redirect_uri')
  if (!redirectUri || !isLoopbackUri(redirectUri)) {
    return toUser(400, 'The redirect URI is not an address on this computer, such as http://127.0.0.1:8787/.')
  }
  const challenge = query.get('code_challenge') ?? undefined
  const request = {
    clientId: client.id,
    redirectUri,
    challenge,
    state: query.get('state') ?? undefined,
    scopes: readScopes(query.get('scope') ?? ''),
  }
  return check(query, request) ?? request
}

function check(query: URLSearchParams, request: AuthorizeRequest): Refusal | undefined {
  if ((query.get('response_type') ?? 'code') !== 'code') {
    return {
      to: 'app',
      error: 'unsupported_response_type',
      why: 'Only the response type "code" is supported.',
      request,
    }
  }
  const method = query.get('code_challenge_method')
  const { challenge } = request
  if (challenge === undefined && method === null) return undefined
  if (method === 'S256' && challenge !== undefined && /^[A-Za-z0-9_-]{43}$/.test(challenge)) return undefined
  return {
    to: 'app',
    error: 'invalid_request',
    why: 'Only a code challenge made with S256 is supported.',
    request,
  }
}

function toUser(status: 400 | 404, why: string): Refusal {
  return { to: 'user', status, why }
}

/** Whether this is a loopback URI, the only kind that the sandbox accepts. Like GitHub, it accepts any port there. */
export function isLoopbackUri(address: string): boolean {
  const url = parseUrl(address)
  if (!url) return false
  const { protocol, hostname, username, password, hash } = url
  return /^https?:$/.test(protocol) && isLoopback(hostname) && username + password + hash === ''
}

/** Reads a list of scopes, separated by spaces or, as GitHub accepts too, by commas. */
export function readScopes(text: string): readonly string[] {
  return [...new Set(text.match(/[a-z_:]+/g) ?? [])]
}
