import type { Cancellable } from '../../base/abort.js'
import { RelayError } from '../../base/errors.js'
import type { OAuthClient } from '../../base/settings.js'
import type { RunningInstance } from '../../instance/running.js'
import { type Revocation, revokeEverywhere } from '../../oauth/revoke.js'
import type { Provider } from '../../providers/provider.js'
import type { TokenOwner, Tokens } from '../../tokens/tokens.js'
import { callInstance } from '../instance-client.js'

/** The parts of a session that revoke a token. */
export interface RevokeParts {
  readonly provider: Provider
  readonly tokens: Tokens
  readonly client: OAuthClient | undefined
  /** Undefined: none serves the profile. */
  readonly instance: RunningInstance | undefined
  /** The user's token, renewed if necessary. */
  owner(options: Cancellable): Promise<TokenOwner>
}

export interface RevokeOptions extends Cancellable {
  readonly local?: boolean | undefined
}

/**
 * Revokes a user's token in the profile's store, and at the code host: with this shell's client or, if it has none, by the instance.
 * @throws RelayError `provider_failed` when a token is deleted here and may still be valid at the code host; `storage`
 */
export async function revokeUser(
  parts: RevokeParts,
  user: string,
  options: RevokeOptions = {},
): Promise<Revocation> {
  const { instance, client, provider } = parts
  const isExpired = !options.local && (await isBeyondRenewal(parts, user, options))
  const isOfInstance = instance?.clientId && client?.id !== instance.clientId && !options.local
  const { removed, upstream } = isOfInstance
    ? await revokeThrough(instance, user, options)
    : await revokeEverywhere(parts, user, options)
  const why = problem(provider.url, upstream)
  if (why !== undefined)
    throw new RelayError('provider_failed', `The token of ${user} is deleted here, but ${why}`)
  if (isExpired)
    throw new RelayError(
      'provider_failed',
      `The expired token of ${user} is deleted here, but its refresh token may still be valid at ${provider.url}, since it could not be renewed`,
    )
  return { removed, upstream }
}

/** @throws RelayError as `callInstance`; a failure at the code host is part of the result. */
async function revokeThrough(
  instance: RunningInstance,
  userId: string,
  { signal }: Cancellable,
): Promise<Revocation> {
  const { removed, upstream } = await callInstance(instance, 'revoke', { userId }, { signal })
  if (typeof upstream === 'string') return { removed, upstream }
  return { removed, upstream: { failed: new RelayError('provider_failed', upstream.message) } }
}

/** Why a token may still be valid. Undefined when there is none. */
function problem(url: string, upstream: Revocation['upstream']): string | undefined {
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
  return (await parts.owner(options).catch(() => undefined)) === undefined
}
