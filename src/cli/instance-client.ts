import { deadline, type Cancellable } from '../base/wait.js'
import { RelayError, type ErrorKind } from '../base/errors.js'
import { type InstanceRecord, prove, PROOF_HEADER } from '../instance/running.js'
import { ownMember, parseJson } from '../json/parse.js'
import { describeWithoutQuote, isUnreached, parseRetryAfter } from '../net/errors.js'
import type { HttpResponse } from '../net/loopback.js'
import type { InstanceCalls } from '../server/instance.js'

/** 60 s: the instance itself gives the code host 25, and a renewal that waits for others 55. */
const ANSWER_LIMIT = 60_000

/**
 * Asks a profile's running instance for what only it knows or can do, once. The request proves that it comes from a program that reads
 * the profile's data, and carries no token.
 * @throws RelayError of the kind of the answer's status, with its text; `unavailable` when no whole answer comes within a minute;
 * `cancelled`. The text says so where the request may have been carried out
 */
export async function callInstance<Name extends keyof InstanceCalls>(
  instance: InstanceRecord,
  call: Name,
  args: Parameters<InstanceCalls[Name]> extends [infer Args extends object] ? Args : object,
  { signal }: Cancellable = {},
): Promise<Awaited<ReturnType<InstanceCalls[Name]>>> {
  const body = JSON.stringify({ ...args, call })
  const headers = { [PROOF_HEADER]: prove(instance, body), 'Content-Type': 'application/json' }
  signal?.throwIfAborted()
  const { createLoopbackClient } = await import('../net/loopback.js')
  using client = createLoopbackClient()
  try {
    const limited = { signal: deadline(ANSWER_LIMIT, signal) }
    const request = { method: 'POST', headers, body } as const
    const response = await client.send(new URL('/instance', instance.url), request, limited)
    if (response.status !== 200) throw refused(response)
    return JSON.parse(response.text)
  } catch (cause) {
    if (signal?.aborted) throw interrupted(cause)
    throw cause instanceof RelayError ? cause : lost(instance.url, cause)
  }
}

/** The error of a request that Ctrl-C interrupted after it was sent. */
export function interrupted(cause: unknown): RelayError {
  const text = 'Interrupted; the request may have been carried out all the same'
  return new RelayError('cancelled', text, { cause })
}

/** What calls fail with, other than `unavailable`. */
const KINDS: Readonly<Record<number, ErrorKind>> = {
  401: 'unauthenticated',
  404: 'not_found',
  429: 'rate_limited',
  500: 'internal',
  502: 'provider_failed',
  503: 'unavailable',
  504: 'provider_timeout',
}

/** What an answer that is no success means: the kind of its status, the text of its `error`. */
function refused({ status, header, text }: HttpResponse): RelayError {
  const wait = parseRetryAfter(header, Date.now())
  return new RelayError(KINDS[status] ?? 'provider_failed', errorOf(text) ?? `relay answered ${status}`, {
    retryAfter: wait && Math.ceil(wait / 1000),
  })
}

/** The text of an answer's `error`; undefined if it has none, or is no JSON. */
export function errorOf(text: string): string | undefined {
  try {
    const error = ownMember(parseJson(text), 'error')
    return typeof error === 'string' ? error : undefined
  } catch {
    return undefined
  }
}

/** No whole answer came from the instance at `url`. */
function lost(url: string, cause: unknown): RelayError {
  const why = describeWithoutQuote(cause)
  const isRead = cause instanceof SyntaxError
  const what = isRead ? 'an answer that is not understood' : `no complete answer (${why})`
  const perhaps = 'the request may have been carried out all the same'
  const text = isUnreached(cause) ? `cannot be reached (${why})` : `gave ${what}; ${perhaps}`
  return new RelayError('unavailable', `relay at ${url} ${text}`, { cause })
}
