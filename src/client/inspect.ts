import type { Cancellable } from '../base/abort.js'
import { INSPECT_TEXT, type InstanceRecord, prove, PROOF_HEADER } from '../instance/running.js'
import type { SendRequest } from '../net/loopback.js'
import type { InspectCode, InspectPending } from '../server/routes/inspect.js'
import { post } from './post.js'

/** What opens the inspector of a running instance. */
export interface InspectClient {
  /** A one-time code. */
  issueCode(): Promise<string>
  /** Whether the code still waits to be used. */
  isPending(code: string): Promise<boolean>
}

/**
 * Requests that prove that they come from a program that reads the profile's data.
 * @throws RelayError of the kind of the answer's status, `not_configured` when the inspector is off; `unavailable`, `cancelled` as
 * `createClient`.
 */
export function createInspectClient(
  instance: InstanceRecord,
  { send, ...options }: Cancellable & { readonly send: SendRequest },
): InspectClient {
  const headers = { [PROOF_HEADER]: prove(instance, INSPECT_TEXT) }
  const ask = <Answer>(path: string, body: string): Promise<Answer> =>
    post<Answer>(send, new URL(path, instance.url), { headers, body }, options)
  return {
    issueCode: async () => (await ask<InspectCode>('/instance/inspect', '')).code,
    isPending: async (code) => (await ask<InspectPending>('/instance/inspect/pending', code)).pending,
  }
}
