import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { prove, PROOF_HEADER, REFUSED_TEXT, type InstanceRecord } from '../instance/running.js'
import type { SendRequest } from '../net/loopback.js'
import type { RefusedAnswer, RefusedEntry } from '../server/routes/refused.js'
import { post } from './post.js'

/** The refused requests that a profile's instance keeps in its memory. */
export interface RefusedClient {
  list(): Promise<RefusedAnswer>
  /** Undefined if the list does not have it, or no longer. */
  entry(id: number): Promise<RefusedEntry | undefined>
}

/**
 * Asks the instance, and proves to it that this program reads the profile's data. The calls reject with a RelayError of the
 * kind of the answer's status; `unavailable`, `cancelled` as `createClient`.
 */
export function createRefusedClient(
  instance: InstanceRecord,
  { send, ...options }: Cancellable & { readonly send: SendRequest },
): RefusedClient {
  const headers = { [PROOF_HEADER]: prove(instance, REFUSED_TEXT) }
  const get = <Answer>(path: string): Promise<Answer> =>
    post(send, new URL(`/instance/refused${path}`, instance.url), { method: 'GET', headers }, options)
  return {
    list: () => get(''),
    async entry(id) {
      try {
        return await get<RefusedEntry>(`/${id}`)
      } catch (error) {
        if (error instanceof RelayError && error.kind === 'not_found') return undefined
        throw error
      }
    },
  }
}
