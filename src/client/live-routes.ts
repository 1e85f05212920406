import { deadline, type Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { LiveRoutes } from '../dispatch/live-routes.js'
import { prove, PROOF_HEADER, ROUTES_TEXT, type InstanceRecord } from '../instance/running.js'
import type { SendRequest } from '../net/loopback.js'
import { lost, refused } from './failure.js'

/** The instance only counts rows. */
const ANSWER_LIMIT = 10_000

/**
 * Asks a profile's instance for its routes. The request proves that it comes from a program that reads the profile's data.
 * @throws RelayError of the kind of the answer's status; `unavailable` without an answer; and the signal's reason.
 */
export async function readLiveRoutes(
  instance: InstanceRecord,
  { send, signal }: Cancellable & { readonly send: SendRequest },
): Promise<LiveRoutes> {
  const headers = { [PROOF_HEADER]: prove(instance, ROUTES_TEXT) }
  try {
    const limited = { signal: deadline(ANSWER_LIMIT, signal) }
    const response = await send(
      new URL('/instance/routes', instance.url),
      { method: 'GET', headers },
      limited,
    )
    if (response.status !== 200) throw refused(response)
    return JSON.parse(response.text)
  } catch (error) {
    signal?.throwIfAborted()
    throw error instanceof RelayError ? error : lost(instance.url, error)
  }
}
