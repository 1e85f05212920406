import { calculatePKCECodeChallenge, generateRandomCodeVerifier } from 'oauth4webapi'
import { RelayError } from '../base/errors.js'
import type { OAuthClient } from '../base/settings.js'
import type { OAuthEndpoints } from '../providers/provider.js'
import { signInCookie, type SignInCookie } from './cookie.js'
import type { OAuthParts } from './parts.js'
import { saveState } from './state.js'

/** Redirect to the provider, and the cookie to set with it. */
export interface Authorization {
  readonly location: string
  readonly cookie: SignInCookie
}

/**
 * Starts a sign-in: stores its state and builds the provider's authorize URL (RFC 6749 section 4.1.1, RFC 7636 section
 * 4.3). With `login`, the outcome is published under that nonce.
 * @throws RelayError `not_configured` without an OAuth client, `storage`.
 */
export async function authorize(parts: OAuthParts, userId: string, login?: string): Promise<Authorization> {
  const { provider, client, store, clock } = parts
  if (!client) throw notConfigured()
  const redirectUri = parts.redirectUri()
  const verifier = generateRandomCodeVerifier()
  const { name, origin } = provider
  const pending = { provider: name, origin, userId, verifier, redirectUri, login }
  const { state, cookie } = await saveState(store, pending, clock)
  const challenge = await calculatePKCECodeChallenge(verifier)
  return {
    location: authorizeUrl(provider.oauth, client, { redirectUri, state, challenge }),
    cookie: signInCookie(state, cookie, redirectUri),
  }
}

function authorizeUrl(
  { authorizationEndpoint, scopes }: OAuthEndpoints,
  client: OAuthClient,
  { redirectUri, state, challenge }: { redirectUri: string; state: string; challenge: string },
): string {
  const url = new URL(authorizationEndpoint)
  const query = url.searchParams
  query.set('response_type', 'code')
  query.set('client_id', client.id)
  query.set('redirect_uri', redirectUri)
  if (scopes.length > 0) query.set('scope', scopes.join(' '))
  query.set('state', state)
  query.set('code_challenge', challenge)
  // Never `plain`: GitHub refuses it, and old versions of Gitea store it wrongly.
  query.set('code_challenge_method', 'S256')
  return url.href
}

function notConfigured(): RelayError {
  return new RelayError(
    'not_configured',
    'Sign-in is not configured: set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET',
  )
}
