import { refreshGrant } from './grants.js'
import type { TokenEndpoint } from './token-endpoint.js'
import { isUnknownClient, TokenError } from './token-error.js'

/** A refresh token that no server has issued. */
const NO_TOKEN = 'relay-asks-whether-this-client-is-known'

/**
 * Whether the code host knows a client, asked by renewing a token that does not exist: a client is refused before the token is (RFC
 * 6749 section 5.2). Undefined if it did not say. Not by a code, for which Gitea gives a wrong secret and a wrong code the same error
 * (routers/web/auth/oauth2_provider.go). Gitea 1.15 checks only the id here.
 */
export async function isKnownClient(endpoint: TokenEndpoint): Promise<boolean | undefined> {
  try {
    await refreshGrant(endpoint, NO_TOKEN)
    return true
  } catch (error) {
    if (!(error instanceof TokenError) || error.failure !== 'refused') return undefined
    return !isUnknownClient(error)
  }
}
