import type { Cancellable } from '../base/abort.js'
import { prove, PROOF_HEADER, renewalText, type InstanceRecord } from '../instance/running.js'
import type { SendRequest } from '../net/loopback.js'
import { post } from './post.js'

/**
 * Has a profile's instance renew the user's token if it is about to end; the store then has the token. The request proves
 * that it comes from a program that reads the store, and carries no token.
 * @throws RelayError of the kind of the answer's status, with the answer's text: `unauthenticated` when only signing in
 * helps; `unavailable`, `cancelled` as `createClient`.
 */
export async function renewThrough(
  instance: InstanceRecord,
  userId: string,
  { send, ...options }: Cancellable & { readonly send: SendRequest },
): Promise<void> {
  const address = new URL(`/instance/renew/${encodeURIComponent(userId)}`, instance.url)
  const headers = { [PROOF_HEADER]: prove(instance, renewalText(userId)) }
  await post(send, address, { headers, body: '' }, options)
}
