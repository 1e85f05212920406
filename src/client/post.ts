import { deadline, type Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { HttpRequest, SendRequest } from '../net/loopback.js'
import { lost, refused } from './failure.js'

/** 60 s: the service itself gives the code host 25, and a renewal that waits for others 55. */
const ANSWER_LIMIT = 60_000

/**
 * Sends one request to a relay, once, and gives the JSON of its answer.
 * @throws RelayError as `createClient` lists them.
 */
export async function post<T>(
  send: SendRequest,
  address: URL,
  { method = 'POST', headers, body }: Partial<HttpRequest> & Pick<HttpRequest, 'headers'>,
  { signal }: Cancellable = {},
): Promise<T> {
  signal?.throwIfAborted()
  try {
    const request = { method, headers, body }
    const response = await send(address, request, { signal: deadline(ANSWER_LIMIT, signal) })
    if (response.status !== 200) throw refused(response)
    return JSON.parse(response.text)
  } catch (error) {
    if (signal?.aborted) throw interrupted(error)
    throw error instanceof RelayError ? error : lost(address.origin, error)
  }
}

function interrupted(cause: unknown): RelayError {
  return new RelayError('cancelled', 'Interrupted; the request may have been carried out all the same', {
    cause,
  })
}
