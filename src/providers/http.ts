import type { ZodType } from 'zod'
import { deadline } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { OAuthClient } from '../base/settings.js'
import { parseJson, readText } from './answer.js'
import { invalidToken, refusal, unanswered } from './errors.js'
import type { Incoming, SendOnce } from './fetch.js'
import { fetchFollowing } from './redirect.js'

/** One code host's REST API. */
export interface Api {
  /** The code host's name in messages. */
  readonly label: string
  /** What every path is appended to, without a trailing slash. */
  readonly base: string
  readonly headers: Readonly<Record<string, string>>
  readonly fetch: SendOnce
  /** Milliseconds for one call, headers and body together. */
  readonly timeLimit: number
}

export interface Call<T> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: readonly (string | number)[]
  /** The user's, sent as a bearer unless there is a `client`. */
  readonly token: string
  /** Calls as this application (Basic, RFC 7617) instead of as the user. */
  readonly client?: OAuthClient
  readonly body?: object
  /** What a successful answer must look like; an empty or unreadable one is `undefined`. */
  readonly answer: ZodType<T>
  readonly signal?: AbortSignal | undefined
}

/**
 * Makes one call to a code host, once: nothing is sent again after a failure, for a write may have been carried
 * out although its answer was lost.
 * @throws RelayError of the kinds that `Provider` lists; `bad_request` for a path part such as `..`.
 */
export async function send<T>(api: Api, call: Call<T>): Promise<{ status: number; value: T }> {
  const { response, text } = await exchange(api, call)
  const json = parseJson(text)
  const { status, headers } = response
  if (status < 200 || status > 299)
    throw refusal({ method: call.method, status, headers, json }, api.label, secretsOf(call))
  const parsed = call.answer.safeParse(json)
  if (!parsed.success) throw unanswered(api.label, call.method, 'gave an answer that was not understood')
  return { status, value: parsed.data }
}

async function exchange(api: Api, call: Call<unknown>): Promise<{ response: Incoming; text: string }> {
  const signal = deadline(api.timeLimit, call.signal)
  const init = {
    method: call.method,
    headers: headersOf(api, call),
    signal,
    ...(call.body && { body: JSON.stringify(call.body) }),
  }
  const address = api.base + pathOf(call.path)
  try {
    const response = await fetchFollowing(api.fetch, address, init)
    return { response, text: await readText(response) }
  } catch (error) {
    if (call.signal?.aborted) throw cancelled(call.signal.reason)
    const why = signal.aborted ? `did not answer within ${api.timeLimit / 1000} s` : error
    throw unanswered(api.label, call.method, why, signal.aborted ? 'provider_timeout' : 'provider_failed')
  }
}

function headersOf(api: Api, { token, client, body }: Call<unknown>): Record<string, string> {
  // fetch would refuse any other token with an error that quotes it.
  if (!/^[\x21-\x7e]+$/.test(token)) throw invalidToken()
  return {
    ...api.headers,
    authorization: client ? `Basic ${basic(client)}` : `Bearer ${token}`,
    // GitHub refuses calls without one.
    'user-agent': 'webhook-relay',
    ...(body && { 'content-type': 'application/json' }),
  }
}

function basic({ id, secret }: OAuthClient): string {
  return Buffer.from(`${id}:${secret.reveal()}`).toString('base64')
}

/** What no message may hold, should the code host repeat it. */
function secretsOf({ token, client }: Call<unknown>): string[] {
  return client ? [token, basic(client), client.secret.reveal()] : [token]
}

/** Joins path parts, each encoded. `..` survives encoding and would walk the provider's paths with the user's token. */
function pathOf(parts: Call<unknown>['path']): string {
  return parts.map((part) => `/${encoded(String(part))}`).join('')
}

function encoded(part: string): string {
  if (/^\.{0,2}$/.test(part))
    throw new RelayError('bad_request', 'A name in a provider path is empty, one dot or two dots')
  return encodeURIComponent(part)
}

function cancelled(reason: unknown): RelayError {
  return reason instanceof RelayError ? reason : new RelayError('cancelled', 'Cancelled', { cause: reason })
}
