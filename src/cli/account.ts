import { type RevokeOptions, revokeToken, type RenewParts } from '../auth/renew.js'
import { RelayError } from '../base/errors.js'
import { isSharedAddress } from '../base/shared-store.js'
import type { CodeHost } from '../codehost/host.js'
import type { RunningInstance } from '../instance/protocol.js'
import { callInstance } from './instance-client.js'
import type { UserProfile } from './user-profile.js'

// The account of a stored token, and the revocation of tokens.

/**
 * Describes the account of a token after the code host named its owner, as `login` and `whoami` print it.
 * @param login the account's name at the code host
 */
export function signedIn(
  { host, values, name, folder, user }: UserProfile,
  { expiresAt }: { expiresAt: number },
  login: string,
) {
  const places = { file: folder, keychain: `the keychain, service relay:${name}`, memory: 'memory' }
  const store = isSharedAddress(values.store) ? `the shared store ${values.store}` : places[values.store]
  const expiry = new Date(expiresAt).toISOString()
  return { user, login, provider: host.name, providerUrl: host.url, store, expiresAt: expiry }
}
export type SignedIn = ReturnType<typeof signedIn>

/**
 * Revokes a user's token here and at the code host: with this shell's client or, if it has none, through the instance.
 * @throws RelayError `provider_failed` if the token is deleted here and may still be valid there; `storage`; as
 * `callInstance`
 */
export async function revokeUser(
  parts: RenewParts & { readonly host: CodeHost },
  instance: RunningInstance | undefined,
  user: string,
  options: RevokeOptions = {},
): Promise<{ readonly removed: boolean; readonly upstream: 'revoked' | 'skipped' }> {
  const { client, host } = parts
  const { removed, upstream } =
    instance?.clientId && !client && !options.local
      ? await callInstance(instance, 'revoke', { userId: user }, options)
      : await revokeToken(parts, user, options)
  if (upstream === 'revoked' || upstream === 'skipped') return { removed, upstream }
  const deleted = `The token of ${user} is deleted here, but`
  const { url } = host
  if (typeof upstream === 'object') {
    const { message } = 'failed' in upstream ? upstream.failed : upstream
    throw new RelayError('provider_failed', `${deleted} ${url} did not revoke it: ${message}`)
  }
  const why = {
    unsupported: `${deleted} it is still valid at ${url}: only its user can revoke it, in the settings there`,
    elsewhere: `${deleted} it came from another code host than ${url}, where it may still be valid`,
    'no client': `${deleted} it is still valid at ${url}: revoking it there needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`,
    expired: `The expired token of ${user} is deleted here, but its refresh token may still be valid at ${url}, since it could not be renewed`,
  }[upstream]
  throw new RelayError('provider_failed', why)
}
