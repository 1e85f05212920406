import type { AuthorizeRequest } from './codes.js'

/** Why an authorize address is refused, and whether the app may be told through its redirect URI. */
export type Refusal =
  | { readonly to: 'user'; readonly status: 400 | 404; readonly why: string }
  | {
      readonly to: 'app'
      readonly error: 'invalid_request' | 'unsupported_response_type'
      readonly why: string
      readonly request: AuthorizeRequest
    }

/**
 * Checks the query of the authorize address. What is wrong with the client id or the redirect URI is told to the
 * user only (RFC 6749 section 4.1.2.1): redirecting there would hand the browser to anyone.
 */
export function readAuthorizeRequest(query: URLSearchParams, clientId: string): AuthorizeRequest | Refusal {
  const twice = [...new Set(query.keys())].find((name) => query.getAll(name).length > 1)
  if (twice !== undefined) return toUser(400, 'A parameter of this address is given twice.')
  if (query.get('client_id') !== clientId) return toUser(404, 'No application has this client id.')
  const redirectUri = query.get('redirect_uri')
  if (!redirectUri || !isLoopback(redirectUri)) {
    return toUser(400, 'The redirect URI is not an address on this computer, such as http://127.0.0.1:8787/.')
  }
  const challenge = query.get('code_challenge') ?? undefined
  const request = {
    clientId,
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

/** GitHub lets a loopback redirect URI name any port; the sandbox, which runs on the user's machine, knows no other. */
function isLoopback(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { protocol, hostname, username, password, hash } = new URL(address)
  return (
    /^https?:$/.test(protocol) &&
    /^(127\.\d+\.\d+\.\d+|\[::1\]|(.+\.)?localhost)$/.test(hostname) &&
    username + password + hash === ''
  )
}

function readScopes(text: string): readonly string[] {
  return [...new Set(text.match(/[a-z_:]+/g) ?? [])]
}
