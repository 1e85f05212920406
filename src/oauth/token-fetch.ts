import { deadline, type Cancellable } from '../base/abort.js'
import { readBounded, TooManyBytes } from '../base/read-bounded.js'
import { LIMITS } from '../base/seams.js'
import { describeWithoutQuote } from '../net/errors.js'
import { sendOnce as sendOverNetwork, type SendOnce } from '../net/client.js'
import { TokenError } from './token-error.js'

/** Response limit, 64 KiB. Responses are below 4 KiB (GitHub), or a little larger when the tokens are JWTs (Gitea). */
const MAX_RESPONSE = 65_536

export interface TokenFetchOptions extends Cancellable {
  /** Default: over the network. */
  readonly sendOnce?: SendOnce
  /** Time limit for the whole call including the response body, in milliseconds. Default: 10 s. */
  readonly exchangeTimeout?: number
}

/** As oauth4webapi calls the token endpoint. */
interface TokenRequest {
  readonly headers: Record<string, string>
  readonly body: URLSearchParams
}

/**
 * Creates a `fetch` for the token endpoint that returns a response once its body is complete, within the time limit and
 * 64 KiB.
 * @throws TokenError `timeout`; `unavailable`: no connection, reset, too large, or a status of 500 and above.
 */
export function tokenFetch({
  sendOnce = sendOverNetwork,
  exchangeTimeout = LIMITS.tokenEndpoint,
  signal,
}: TokenFetchOptions) {
  return async (url: string, { headers, body }: TokenRequest): Promise<Response> => {
    try {
      const request = {
        method: 'POST',
        headers,
        body: String(body),
        signal: deadline(exchangeTimeout, signal),
      } as const
      const response = await sendOnce(url, request)
      const { status, header } = response
      const bytes = await readBounded(response.body, MAX_RESPONSE)
      if (status >= 500) throw unavailable(`answered ${status}`)
      const read = ['content-type', 'www-authenticate'].flatMap((name) => {
        const value = header(name)
        return value === undefined ? [] : [[name, value] as const]
      })
      // A status such as 204 does not even allow an empty body.
      return new Response(bytes.length > 0 ? bytes : null, { status, headers: Object.fromEntries(read) })
    } catch (error) {
      throw error instanceof TokenError ? error : connectionError(error)
    }
  }
}

function unavailable(what: string): TokenError {
  return new TokenError('unavailable', `the token endpoint ${what}`)
}

/** Error without the message of its cause, which may quote the request. */
function connectionError(error: unknown): TokenError {
  if (error instanceof TooManyBytes) return unavailable(`answered more than ${MAX_RESPONSE} bytes`)
  const { name } = error instanceof Error ? error : new Error()
  if (name === 'TimeoutError') return new TokenError('timeout', 'the token endpoint did not answer in time')
  return unavailable(`could not be reached (${describeWithoutQuote(error)})`)
}
