import { type Revocation, type RevokeOptions, revoke, type RenewParts } from '../../auth/renew.js'
import type { Cancellable } from '../../base/abort.js'
import { RelayError } from '../../base/errors.js'
import { callInstance } from '../../client/call-instance.js'
import type { CodeHost } from '../../codehost/host.js'
import type { RunningInstance } from '../../instance/running.js'

/** The parts of a session that revoke a token. */
export interface RevokeParts extends RenewParts {
  readonly host: RenewParts['host'] & Pick<CodeHost, 'url'>
  /** Undefined: none serves the profile. */
  readonly instance: RunningInstance | undefined
}

/**
 * Revokes a user's token in the profile's store.
 * The instance, if it has an OAuth client, revokes it at the code host.
 * @throws RelayError `provider_failed` when a token is deleted here and may still be valid at the code host; `storage`
 */
export async function revokeUser(
  parts: RevokeParts,
  user: string,
  options: RevokeOptions = {},
): Promise<Revocation> {
  const { instance, host } = parts
  const { removed, upstream } =
    instance?.clientId && !options.local
      ? await revokeThrough(instance, user, options)
      : await revoke(parts, user, options)
  const why = problem(host, user, upstream)
  if (why !== undefined) throw new RelayError('provider_failed', why)
  return { removed, upstream }
}

/**
 * Has the instance revoke the user's token, here and, with its OAuth client, at the code host.
 * @throws RelayError as {@link callInstance}; a failure at the code host is part of the result.
 */
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
function problem(
  { url }: Pick<CodeHost, 'url'>,
  user: string,
  upstream: Revocation['upstream'],
): string | undefined {
  if (upstream === 'revoked' || upstream === 'skipped') return undefined
  const deleted = `The token of ${user} is deleted here, but`
  if (typeof upstream === 'object') return `${deleted} ${url} did not revoke it: ${upstream.failed.message}`
  return {
    unsupported: `${deleted} it is still valid at ${url}: only its user can revoke it, in the settings there`,
    elsewhere: `${deleted} it came from another code host than ${url}, where it may still be valid`,
    'no client': `${deleted} it is still valid at ${url}: revoking it there needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`,
    expired: `The expired token of ${user} is deleted here, but its refresh token may still be valid at ${url}, since it could not be renewed`,
  }[upstream]
}
