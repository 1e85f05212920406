import type { Cancellable } from '../base/abort.js'
import { type RelayError, toRelayError } from '../base/errors.js'
import type { OAuthClient } from '../base/settings.js'
import type { Provider } from '../providers/provider.js'
import type { TokenOwner, Tokens } from '../tokens/tokens.js'

export interface RevokeParts {
  readonly provider: Pick<Provider, 'origin' | 'isPersonal' | 'revokeToken'>
  readonly client: OAuthClient | undefined
  readonly tokens: Pick<Tokens, 'get' | 'refreshable' | 'revoke'>
}

export interface RevokeOptions extends Cancellable {
  /** Does not revoke the token at the provider. */
  readonly local?: boolean | undefined
}

/**
 * Result at the provider. `unsupported`: no application can revoke the token there · `skipped`: not requested, or no valid token ·
 * `elsewhere`: the token is of another provider · `no client`: only the OAuth client may revoke it, and none is configured.
 */
export type Upstream =
  | 'revoked'
  | 'unsupported'
  | 'skipped'
  | 'elsewhere'
  | 'no client'
  | { readonly failed: RelayError }

export interface Revocation {
  /** False when nothing was stored for the user. */
  readonly removed: boolean
  readonly upstream: Upstream
}

/**
 * Removes all tokens of the user here, then revokes the access token at its provider. If the provider cannot be reached, the
 * tokens are removed here all the same, and the result reports it instead of throwing.
 * @throws RelayError `storage`.
 */
export async function revokeEverywhere(
  parts: RevokeParts,
  userId: string,
  options: RevokeOptions = {},
): Promise<Revocation> {
  const { tokens } = parts
  const owner = await tokens.get(userId)
  const refreshable = await tokens.refreshable(userId)
  const revoked = await tokens.revoke(userId)
  return {
    removed: revoked || refreshable !== undefined,
    upstream: await revokeUpstream(parts, owner, options),
  }
}

async function revokeUpstream(
  { provider, client }: RevokeParts,
  owner: TokenOwner | undefined,
  { local = false, signal }: RevokeOptions,
): Promise<Upstream> {
  if (local || !owner) return 'skipped'
  if (owner.origin !== provider.origin) return 'elsewhere'
  if (!provider.revokeToken || provider.isPersonal?.(owner.accessToken)) return 'unsupported'
  if (!client) return 'no client'
  try {
    await provider.revokeToken(owner.accessToken, client, { signal })
    return 'revoked'
  } catch (error) {
    return { failed: toRelayError(error) }
  }
}
