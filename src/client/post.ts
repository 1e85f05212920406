import { deadline, type Cancellable } from '../base/abort.js'
import { RelayError, type ErrorKind } from '../base/errors.js'
import { describeWithoutQuote, isUnreached, parseRetryAfter } from '../net/errors.js'
import type { HttpRequest, HttpResponse, SendRequest } from '../net/loopback.js'

/** 60 s: the service itself gives the code host 25, and a renewal that waits for others 55. */
const ANSWER_LIMIT = 60_000

/**
 * Posts one request to a relay, once, and gives the JSON of its answer.
 * @throws RelayError as `createClient` lists them.
 */
export async function post<T>(
  send: SendRequest,
  address: URL,
  request: Pick<HttpRequest, 'headers' | 'body'>,
  { signal }: Cancellable = {},
): Promise<T> {
  signal?.throwIfAborted()
  try {
    const limited = { signal: deadline(ANSWER_LIMIT, signal) }
    const response = await send(address, { method: 'POST', ...request }, limited)
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

const KINDS: Readonly<Record<number, ErrorKind>> = {
  400: 'bad_request',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'request_timeout',
  409: 'conflict',
  410: 'gone',
  413: 'too_large',
  415: 'unsupported_media_type',
  422: 'unprocessable',
  429: 'rate_limited',
  431: 'header_too_large',
  500: 'internal',
  502: 'provider_failed',
  504: 'provider_timeout',
}

/** What an answer that is no success means: the kind of its status, the text of its `error`. */
function refused({ status, header, text }: HttpResponse): RelayError {
  const wait = parseRetryAfter(header, Date.now())
  return new RelayError(KINDS[status] ?? 'unavailable', errorOf(text) ?? `relay answered ${status}`, {
    retryAfter: wait && Math.ceil(wait / 1000),
  })
}

function errorOf(text: string): string | undefined {
  try {
    const { error }: { error?: unknown } = JSON.parse(text)
    return typeof error === 'string' ? error : undefined
  } catch {
    return undefined
  }
}

/** No whole answer came from the service at `url`. */
function lost(url: string, cause: unknown): RelayError {
  const where = `relay at ${url}`
  const why = describeWithoutQuote(cause)
  if (isUnreached(cause))
    return new RelayError('unavailable', `${where} cannot be reached (${why})`, { cause })
  const what =
    cause instanceof SyntaxError
      ? 'gave an answer that is not understood'
      : `gave no complete answer (${why})`
  return new RelayError(
    'unavailable',
    `${where} ${what}; the request may have been carried out all the same`,
    { cause },
  )
}
