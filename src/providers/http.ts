import type { ZodType } from 'zod'
import { type Cancellable, deadline } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { OAuthClient } from '../base/settings.js'
import { type HeaderReader, type OutboundResponse, readText, type SendOnce } from '../net/client.js'
import { parseJson, type ParseOptions } from './answer.js'
import { invalidToken, refusal, noAnswer } from './errors.js'
import { sendFollowing } from './redirect.js'

/** One code host's REST API. */
export interface Api {
  /** The code host's name in messages. */
  readonly label: string
  /** The API's address, without a trailing slash. */
  readonly base: string
  readonly headers: Readonly<Record<string, string>>
  readonly sendOnce: SendOnce
  /** Milliseconds for one call, headers and body together. */
  readonly timeLimit: number
}

/** The API as one user calls it. */
export interface UserApi extends Api, Cancellable {
  /** Sent as a bearer unless the call has a `client`. */
  readonly token: string
}

export interface Call<T> extends ParseOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: readonly (string | number)[]
  readonly query?: Readonly<Record<string, string>>
  /** Authenticates as this application (Basic, RFC 7617) instead of as the user. */
  readonly client?: OAuthClient
  /** Sent without authentication. */
  readonly anonymous?: boolean
  readonly body?: object
  /** Schema of a successful answer. An answer that is empty or not JSON is `undefined`. */
  readonly answer: ZodType<T>
}

/** A successful answer. */
export interface Answer<T> {
  readonly status: number
  readonly header: HeaderReader
  readonly value: T
}

/**
 * Makes one call to a code host, once. Never repeats it after a failure, since a write may have been carried out although its
 * answer was lost.
 * @throws RelayError of the kinds that `Provider` lists; `bad_request` for a path part such as `..`.
 */
export async function send<T>(api: UserApi, call: Call<T>): Promise<Answer<T>> {
  const { response, text } = await exchange(api, call)
  const json = parseJson(text, call)
  const { status, header } = response
  if (status < 200 || status > 299)
    throw refusal({ method: call.method, status, header, json }, api.label, secretsOf(api, call))
  const parsed = call.answer.safeParse(json)
  if (!parsed.success) throw noAnswer(api.label, call.method, 'gave an answer that was not understood')
  return { status, header, value: parsed.data }
}

async function exchange(
  api: UserApi,
  call: Call<unknown>,
): Promise<{ response: OutboundResponse; text: string }> {
  const signal = deadline(api.timeLimit, api.signal)
  const init = {
    method: call.method,
    headers: headersOf(api, call),
    signal,
    ...(call.body && { body: JSON.stringify(call.body) }),
  }
  const query = call.query ? `?${new URLSearchParams(call.query).toString()}` : ''
  const address = api.base + pathOf(call.path) + query
  try {
    const response = await sendFollowing(api.sendOnce, address, init)
    return { response, text: await readText(response) }
  } catch (error) {
    if (api.signal?.aborted) throw cancelled(api.signal.reason)
    const why = signal.aborted ? `did not answer within ${api.timeLimit / 1000} s` : error
    throw noAnswer(api.label, call.method, why, signal.aborted ? 'provider_timeout' : 'provider_failed')
  }
}

function headersOf(
  { token, headers }: UserApi,
  { client, anonymous, body }: Call<unknown>,
): Record<string, string> {
  // A header cannot hold any other token.
  if (!anonymous && !/^[\x21-\x7e]+$/.test(token)) throw invalidToken()
  return {
    ...headers,
    ...(!anonymous && { authorization: client ? `Basic ${basic(client)}` : `Bearer ${token}` }),
    // GitHub refuses calls without one.
    'user-agent': 'webhook-relay',
    ...(body && { 'content-type': 'application/json' }),
  }
}

function basic({ id, secret }: OAuthClient): string {
  return Buffer.from(`${id}:${secret.reveal()}`).toString('base64')
}

/** Secrets that the code host may repeat, and that messages must not contain. */
function secretsOf({ token }: UserApi, { client, anonymous }: Call<unknown>): string[] {
  if (anonymous) return []
  return client ? [token, basic(client), client.secret.reveal()] : [token]
}

/** Joins path parts, each encoded. `..` survives encoding and would reach other paths of the provider with the user's token. */
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
