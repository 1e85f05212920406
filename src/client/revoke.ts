import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { prove, PROOF_HEADER, revocationText, type InstanceRecord } from '../instance/running.js'
import type { SendRequest } from '../net/loopback.js'
import type { Revocation } from '../oauth/revoke.js'
import { post } from './post.js'

interface Answer {
  readonly removed: boolean
  readonly upstream: Exclude<Revocation['upstream'], object> | { readonly message: string }
}

/**
 * Has a profile's instance revoke the user's token, here and, with its OAuth client, at the code host. The request proves that it
 * comes from a program that can read the profile's data.
 * @throws RelayError as `createClient`; a failure at the code host is part of the result.
 */
export async function revokeThrough(
  instance: InstanceRecord,
  userId: string,
  { send, ...options }: Cancellable & { readonly send: SendRequest },
): Promise<Revocation> {
  const address = new URL(`/instance/revoke/${encodeURIComponent(userId)}`, instance.url)
  const headers = { [PROOF_HEADER]: prove(instance, revocationText(userId)) }
  const { removed, upstream } = await post<Answer>(send, address, { headers, body: '' }, options)
  if (typeof upstream === 'string') return { removed, upstream }
  return { removed, upstream: { failed: new RelayError('provider_failed', upstream.message) } }
}
