import type { Cancellable } from '../../base/abort.js'
import { RelayError, toRelayError } from '../../base/errors.js'
import type { OAuthClient, Settings } from '../../base/settings.js'
import { SharedStore } from '../../base/shared-store.js'
import { revokeThrough } from '../../client/revoke.js'
import type { RunningInstance } from '../../instance/registry.js'
import type { SendRequest } from '../../net/loopback-client.js'
import { type Revocation, revokeEverywhere } from '../../oauth/revoke.js'
import type { Provider } from '../../providers/provider.js'
import type { Store } from '../../store/contract.js'
import { KEYCHAIN_USED } from '../../store/keychain-used.js'
import { databaseExists, openDatabase } from '../../store/open.js'
import { parseToken, tokenKey } from '../../tokens/records.js'
import { createTokens, type TokenOwner, type Tokens } from '../../tokens/tokens.js'

/** The parts of a session that revoke a token. */
export interface RevokeParts {
  readonly settings: Pick<Settings, 'store' | 'folder'>
  readonly provider: Provider
  readonly store: Store
  readonly tokens: Tokens
  readonly client: OAuthClient | undefined
  /** Undefined: none serves the profile. */
  readonly instance: RunningInstance | undefined
  readonly send?: SendRequest
  /** The user's token, renewed if necessary. */
  owner?(options: Cancellable): Promise<TokenOwner>
}

export interface RevokeOptions extends Cancellable {
  readonly local?: boolean | undefined
}

/**
 * Revokes a user's token in the profile's store, and in the other kind of store if that was used before.
 * The instance, if it has an OAuth client, revokes it at the code host.
 * @throws RelayError `provider_failed` when a token is deleted here and may still be valid at the code host; `storage`, also when
 * the other store cannot be read.
 */
export async function revokeUser(
  parts: RevokeParts,
  user: string,
  options: RevokeOptions = {},
): Promise<Revocation> {
  const { instance, send } = parts
  await using earlier = await openEarlier(parts)
  // Read first: both stores share the record of a token's origin.
  const before = await earlier?.find(user).catch((error: unknown) => toRelayError(error))
  const isExpired = !options.local && (await isBeyondRenewal(parts, user, options))
  const first =
    instance?.clientId && send && !options.local
      ? await revokeThrough(instance, user, { send, ...options })
      : await revokeEverywhere(parts, user, options)
  const second = await revokeEarlier(parts, earlier, before, user, options)
  const all = second ? [first, second] : [first]
  for (const { upstream } of all) {
    const why = problem(parts, upstream)
    if (why !== undefined)
      throw new RelayError('provider_failed', `The token of ${user} is deleted here, but ${why}`)
  }
  if (isExpired)
    throw new RelayError(
      'provider_failed',
      `The expired token of ${user} is deleted here, but its refresh token may still be valid at ${parts.provider.url}, since it could not be renewed`,
    )
  const upstream = all.map((one) => one.upstream).find((one) => one !== 'skipped') ?? 'skipped'
  return { removed: all.some(({ removed }) => removed), upstream }
}

/** Why a token may still be valid. Undefined when there is none. */
function problem({ provider: { url } }: RevokeParts, upstream: Revocation['upstream']): string | undefined {
  if (upstream === 'revoked' || upstream === 'skipped') return undefined
  if (typeof upstream === 'object') return `${url} did not revoke it: ${upstream.failed.message}`
  return {
    unsupported: `it is still valid at ${url}: only its user can revoke it, in the settings there`,
    elsewhere: `it came from another code host than ${url}, where it may still be valid`,
    'no client': `it is still valid at ${url}: revoking it there needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`,
  }[upstream]
}

/**
 * Whether the token has expired and cannot be renewed, although there is a refresh token: the code host revokes that only together
 * with a valid token.
 */
async function isBeyondRenewal(parts: RevokeParts, user: string, options: Cancellable): Promise<boolean> {
  const { tokens } = parts
  if ((await tokens.get(user)) || !(await tokens.refreshable(user))) return false
  return (await parts.owner?.(options).catch(() => undefined)) === undefined
}

interface Earlier extends AsyncDisposable {
  readonly tokens: Tokens
  find(user: string): Promise<TokenOwner | undefined>
}

/** The other kind of store of the profile, if it can hold tokens. */
async function openEarlier({ settings, store }: RevokeParts): Promise<Earlier | undefined> {
  const { store: kind, folder } = settings
  if (kind instanceof SharedStore || kind === 'memory' || !databaseExists(folder)) return undefined
  if (kind === 'file' && (await store.get(KEYCHAIN_USED)) === undefined) return undefined
  const database = await openDatabase({ kind: kind === 'file' ? 'keychain' : 'file', folder })
  const tokens = createTokens(database.store)
  return {
    tokens,
    async find(user) {
      const record = parseToken(await database.store.get(tokenKey(user)))
      // By the index: the record of the origin belongs to the newer token.
      return record && tokens.findByBearer(record.accessToken)
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

async function revokeEarlier(
  { provider, client }: RevokeParts,
  earlier: Earlier | undefined,
  owner: TokenOwner | RelayError | undefined,
  user: string,
  options: RevokeOptions,
): Promise<Revocation | undefined> {
  if (!earlier || owner === undefined) return undefined
  if (owner instanceof RelayError)
    throw new RelayError(
      owner.kind,
      `The token of ${user} in the profile's store is revoked, but not one that may be in the store used before: ${owner.message}`,
      { cause: owner },
    )
  const { tokens } = earlier
  const stored = { ...tokens, get: async () => owner }
  return revokeEverywhere({ provider, client, tokens: stored }, user, options)
}
