import type { Cancellable } from '../base/abort.js'
import { type InstanceRecord, prove, PROOF_HEADER } from '../instance/running.js'
import { createLoopbackClient } from '../net/loopback.js'
import type { InstanceCalls } from '../server/instance.js'
import { post } from './post.js'

/**
 * Asks a profile's running instance for what only it knows or can do. The request proves that it comes from a program that reads
 * the profile's data, and carries no token.
 * @throws RelayError of the kind of the answer's status, with the answer's text; `unavailable`, `cancelled` as `createClient`.
 */
export async function callInstance<Name extends keyof InstanceCalls>(
  instance: InstanceRecord,
  call: Name,
  args: InstanceCalls[Name]['args'],
  options: Cancellable = {},
): Promise<InstanceCalls[Name]['answer']> {
  const body = JSON.stringify({ ...args, call })
  const headers = { [PROOF_HEADER]: prove(instance, body), 'Content-Type': 'application/json' }
  using client = createLoopbackClient()
  return await post(client.send, new URL('/instance', instance.url), { headers, body }, options)
}
