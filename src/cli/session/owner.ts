import { isFresh, signInAgain } from '../../auth/renew.js'
import type { Cancellable } from '../../base/abort.js'
import { callInstance } from '../../client/call-instance.js'
import type { InstanceRecord } from '../../instance/running.js'
import type { CodeHost } from '../../codehost/host.js'
import type { TokenOwner, Tokens } from '../../tokens/tokens.js'

interface OwnerParts {
  readonly host: Pick<CodeHost, 'origin'>
  readonly tokens: Pick<Tokens, 'get'>
  readonly user: string
}

/**
 * The user's token. An expired token, or one about to expire, is renewed by the instance, which has the OAuth client, so that
 * this process needs no client secret.
 * @throws RelayError as {@link callInstance}: `unauthenticated` when only signing in helps.
 */
export async function ownerThrough(
  instance: InstanceRecord,
  { host, tokens, user }: OwnerParts,
  options: Cancellable = {},
): Promise<TokenOwner> {
  const owner = await tokens.get(user)
  if (owner?.origin === host.origin && isFresh(owner)) return owner
  // Also for no token, or one of another code host: the instance names the next step.
  await callInstance(instance, 'renew', { userId: user }, options)
  const renewed = await tokens.get(user)
  if (!renewed) throw signInAgain(`The token of ${user} was revoked meanwhile`)
  return renewed
}
