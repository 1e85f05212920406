import { deadline, type Cancellable } from '../base/abort.js'
import { TokenError } from './token-error.js'

/** 64 KiB: answers are below 4 KiB (GitHub), a little more where the tokens are JWTs (Gitea). */
const MAX_ANSWER = 65_536

export interface TokenFetchOptions extends Cancellable {
  /** For the whole call, the reading of the answer included; in milliseconds. */
  readonly timeout: number
}

/**
 * A `fetch` for the token endpoint that gives the answer only when all of it has come, within the time and a
 * size of 64 KiB.
 * @throws TokenError `timeout`; `unavailable`: no connection, reset, too large, or a status of 500 and above.
 */
export function tokenFetch(fetch: typeof globalThis.fetch, { timeout, signal }: TokenFetchOptions) {
  return async (url: string, init: RequestInit): Promise<Response> => {
    try {
      const response = await fetch(url, { ...init, signal: deadline(timeout, signal) })
      const { status, headers } = response
      const body = await readBounded(response)
      if (status >= 500) throw unavailable(`answered ${status}`)
      // A status such as 204 allows no body, not even an empty one.
      return new Response(body.length > 0 ? body : null, { status, headers })
    } catch (error) {
      throw error instanceof TokenError ? error : unreached(error)
    }
  }
}

async function readBounded(response: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    // Leaving the loop cancels the body, which closes the connection.
    if (size > MAX_ANSWER) throw unavailable(`answered more than ${MAX_ANSWER} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function unavailable(what: string): TokenError {
  return new TokenError('unavailable', `the token endpoint ${what}`)
}

/** Names the failure by its code alone: an error's text or cause may quote the request. */
function unreached(error: unknown): TokenError {
  const { name, cause } = error instanceof Error ? error : new Error()
  if (name === 'TimeoutError') return new TokenError('timeout', 'the token endpoint did not answer in time')
  const code: unknown = Object(cause).code
  return unavailable(typeof code === 'string' ? `could not be reached (${code})` : 'could not be reached')
}
