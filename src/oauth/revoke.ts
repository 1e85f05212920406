import type { Cancellable } from '../base/abort.js'
import { type RelayError, toRelayError } from '../base/errors.js'
import type { OAuthClient } from '../base/settings.js'
import type { Provider } from '../providers/provider.js'
import type { Holder, Tokens } from '../tokens/tokens.js'

export interface RevokeParts {
  readonly provider: Pick<Provider, 'origin' | 'revokeToken'>
  readonly client: OAuthClient | undefined
  readonly tokens: Pick<Tokens, 'get' | 'refreshable' | 'revoke'>
}

export interface RevokeOptions extends Cancellable {
  /** Leaves the provider alone. */
  readonly local?: boolean | undefined
}

/**
 * What became of the token at the provider: `unsupported`: it has no way to revoke one · `skipped`: not wanted, no token to
 * revoke, or one of another provider · `no client`: only the OAuth client may, and none is configured.
 */
export type Upstream = 'revoked' | 'unsupported' | 'skipped' | 'no client' | { readonly failed: RelayError }

export interface Revocation {
  /** False when nothing was kept of the user. */
  readonly removed: boolean
  readonly upstream: Upstream
}

/**
 * Forgets all tokens of the user, then revokes the access token at the provider it came from. What is kept here goes first in
 * every case, so that it is gone also when the provider cannot be reached; that is reported, not thrown.
 * @throws RelayError `storage`.
 */
export async function revokeEverywhere(
  parts: RevokeParts,
  userId: string,
  options: RevokeOptions = {},
): Promise<Revocation> {
  const { tokens } = parts
  const holder = await tokens.get(userId)
  const refreshable = await tokens.refreshable(userId)
  const revoked = await tokens.revoke(userId)
  return {
    removed: revoked || refreshable !== undefined,
    upstream: await revokeUpstream(parts, holder, options),
  }
}

async function revokeUpstream(
  { provider, client }: RevokeParts,
  holder: Holder | undefined,
  { local = false, signal }: RevokeOptions,
): Promise<Upstream> {
  if (local || holder?.origin !== provider.origin) return 'skipped'
  if (!provider.revokeToken) return 'unsupported'
  if (!client) return 'no client'
  try {
    await provider.revokeToken(holder.accessToken, client, { signal })
    return 'revoked'
  } catch (error) {
    return { failed: toRelayError(error) }
  }
}
