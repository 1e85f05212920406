import { z, type ZodMiniType } from 'zod/mini'
import { type Cancellable, deadline, sleep } from '../base/wait.js'
import { type ErrorKind, RelayError } from '../base/errors.js'
import { parseUrl } from '../base/address.js'
import { TooManyBytes } from '../base/bytes.js'
import type { OAuthClient } from '../base/settings.js'
import { fieldsOf, parseJson } from '../json/parse.js'
import { jsonTokens } from '../json/text.js'
import {
  type HeaderReader,
  type OutboundRequest,
  type OutboundResponse,
  readResponseText,
  type ResponseHead,
  type SendOnce,
} from '../net/client.js'
import { redirectTarget } from '../net/redirect.js'
import { describeWithoutQuote, isUnreached, millisecondsUntil, parseRetryAfter } from '../net/errors.js'
import type { CallingOptions, TokenSource } from './host.js'
import { KINDS_OF_STATUSES, Refusal } from './refusal.js'

/** REST API of one code host. */
export interface Api extends CallingOptions {
  /** The code host's name in messages. */
  readonly label: string
  /** The API's address, without a trailing slash. */
  readonly base: string
  readonly headers: Readonly<Record<string, string>>
  /** Origin of its pages for people, to which its addresses of SAML sign-on lead. Absent if it has none (Gitea). */
  readonly signOnOrigin?: string
  /** Converts a refusal whose meaning differs from its status: GitLab answers 401 to a forbidden merge. */
  readonly explain?: (refusal: Refusal) => RelayError | undefined
}

/**
 * Caller of the API: a user or an App with its token or, with `client`, an application that authenticates itself
 * (Basic, RFC 7617) for a call about that token.
 */
interface Caller {
  readonly token: TokenSource
  readonly client?: OAuthClient
}

type Method = OutboundRequest['method']

interface Call<T> {
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
  /** Schema of a successful response. An empty body, or one that is not JSON, is `undefined`. */
  readonly answer: ZodMiniType<T>
  /** Parses integers of more than 15 digits to strings, which numbers would round. */
  readonly exact?: boolean
}

/** A successful response. */
export interface ApiResponse<T> {
  readonly status: number
  readonly header: HeaderReader
  readonly value: T
}

/** Items per page: 50 of the longest comments, 64 KiB each, are below the limit of one response. */
export const PAGE_SIZE = '50'
/** With {@link PAGE_SIZE}, 2,500 items: as many comments as GitHub allows on an issue. */
const MAX_PAGES = 50

/**
 * Template tag for a path of an API: `` path`/repos/${owner}/${repo}` ``. Encodes each part. `..` survives encoding and
 * would reach other paths with the user's token, and so would a name with slashes, which some servers decode.
 * @throws RelayError `bad_request` for a part that is empty, one dot or two dots
 */
export function apiPath(texts: TemplateStringsArray, ...parts: readonly (string | number)[]): string {
  const names = parts.flatMap((part) => String(part).split('/'))
  if (names.some((name) => ['', '.', '..'].includes(name)))
    throw new RelayError('bad_request', 'A name in a provider path is empty, one dot or two dots')
  return String.raw({ raw: texts }, ...parts.map(encodeURIComponent))
}

/** An API as one caller uses it, or unauthenticated without a caller. The signal cancels every call. */
export class RestClient {
  readonly label: string
  readonly limits: Api['limits']
  readonly #api: Api
  readonly #caller: Caller | undefined
  readonly #signal: AbortSignal | undefined

  constructor(api: Api, caller: Caller | undefined, { signal }: Cancellable = {}) {
    this.label = api.label
    this.limits = api.limits
    this.#api = api
    this.#caller = caller
    this.#signal = signal
  }

  /**
   * Makes one call without retries, since a write may have been carried out although its response was lost.
   * @throws RelayError of the kinds that `CodeHost` lists, {@link Refusal} for an unsuccessful response; errors of the
   * token's source; the code host's `refusal`
   */
  call<T>(method: Method, where: string, call: Call<T>): Promise<ApiResponse<T>>
  call(method: Method, where: string, call?: Omit<Call<unknown>, 'answer'>): Promise<ApiResponse<unknown>>
  async call(
    method: Method,
    where: string,
    { query, body, answer: schema = z.unknown(), exact = false }: Partial<Call<unknown>> = {},
  ): Promise<ApiResponse<unknown>> {
    const { label, base, sendOnce, limits, explain, signOnOrigin, refusal: notCalled } = this.#api
    if (notCalled) throw notCalled
    const { secrets, ...identity } = await credentialsOf(this.#caller)
    const headers = { ...this.#api.headers, ...identity.headers, ...(body && JSON_TYPE) }
    const address = `${base}${where}${query ? `?${new URLSearchParams(query).toString()}` : ''}`
    const signal = deadline(limits.codeHost, this.#signal)
    let answer: OutboundResponse
    let elsewhere: string | undefined
    let text: string
    try {
      const request = { method, headers, signal, ...(body && { body: JSON.stringify(body) }) }
      ;[answer, elsewhere] = await sendFollowing(sendOnce, address, request)
      text = await readResponseText(answer)
    } catch (error) {
      if (this.#signal?.aborted) throw cancelled(this.#signal.reason)
      if (!signal.aborted) throw noAnswer(label, method, error)
      throw noAnswer(label, method, `did not answer within ${limits.codeHost / 1000} s`, 'provider_timeout')
    }
    const { status, header } = answer
    const json = parseResponse(text, exact)
    if (status < 200 || status > 299) {
      const to = elsewhere === undefined ? undefined : withoutSecrets(elsewhere, secrets)
      const signOn = signOnAddress(answer, signOnOrigin, secrets)
      const refused = refusal(label, method, answer, upstreamMessage(json, secrets), {
        missingRight: missingRightOf(answer, json, upstreamMessage(json, secrets)),
        elsewhere: to,
        signOn,
      })
      throw explain?.(refused) ?? refused
    }
    const { success, data } = schema.safeParse(json)
    if (!success) throw noAnswer(label, method, 'gave an answer that was not understood')
    return { status, header, value: data }
  }

  /** Waits between two calls. @throws RelayError `cancelled` */
  async wait(ms: number): Promise<void> {
    await sleep(ms, { signal: this.#signal }).catch(() => {
      throw cancelled(this.#signal?.reason)
    })
  }

  /**
   * Yields the items of a list, page by page, as long as a response announces more.
   * @throws RelayError as {@link call}; `unprocessable` if there are more after 50 pages
   */
  async *items<T>(
    where: string,
    answer: ZodMiniType<readonly T[]>,
    query: Readonly<Record<string, string>>,
    hasMore: (page: ApiResponse<readonly T[]>) => boolean = ({ header }) => nextLink(header) !== undefined,
  ): AsyncGenerator<T> {
    for (let page = 1; page <= MAX_PAGES; page++) {
      const one = await this.call('GET', where, { query: { ...query, page: String(page) }, answer })
      yield* one.value
      if (!hasMore(one)) return
    }
    throw new RelayError('unprocessable', `${this.label} lists more than relay reads (${MAX_PAGES} pages)`)
  }

  /** Collects all {@link items}. */
  async all<T>(...list: Parameters<typeof this.items<T>>): Promise<readonly T[]> {
    const all: T[] = []
    for await (const item of this.items(...list)) all.push(item)
    return all
  }
}

/**
 * Address of the next page in a `Link` header (RFC 8288; docs.github.com, "Using pagination in the REST API"). Only its
 * query may be used.
 */
export function nextLink(header: HeaderReader): URL | undefined {
  const [, address = ''] = /<([^<>]*)>; *rel="next"/.exec(header('link') ?? '') ?? []
  return parseUrl(address)
}

const JSON_TYPE = { 'content-type': 'application/json' }

/**
 * Headers that authenticate the caller, and the secrets in them, which the code host may repeat and messages must not
 * contain.
 */
async function credentialsOf(caller: Caller | undefined): Promise<{
  readonly headers: Readonly<Record<string, string>>
  readonly secrets: readonly string[]
}> {
  // GitHub refuses calls without a User-Agent.
  const agent = { 'user-agent': 'webhook-relay' }
  if (!caller) return { headers: agent, secrets: [] }
  const { token: source, client } = caller
  const token = typeof source === 'string' ? source : await source()
  // A header cannot contain any other character, and undici's error would quote the token.
  if (!/^[\x21-\x7e]+$/.test(token)) throw new RelayError('invalid_token', INVALID_TOKEN)
  if (!client) return { headers: { ...agent, authorization: `Bearer ${token}` }, secrets: [token] }
  const basic = Buffer.from(`${client.id}:${client.secret.reveal()}`).toString('base64')
  const secrets = [token, basic, client.secret.reveal()]
  return { headers: { ...agent, authorization: `Basic ${basic}` }, secrets }
}

/** A renamed repository takes one redirect. More than a few are a loop. */
const MAX_REDIRECTS = 3

/**
 * Sends a request and follows redirects within the origin, so that the token reaches no other. A GET follows up to
 * three. A write follows one, and only 307 or 308, which preserve method and body (RFC 9110 section 15.4): after a 301
 * or 302, clients repeat it as a GET. Also returns the target of a redirect that was not followed.
 */
async function sendFollowing(
  sendOnce: SendOnce,
  address: string,
  request: OutboundRequest,
): Promise<readonly [OutboundResponse, elsewhere: string | undefined]> {
  const read = request.method === 'GET'
  const followed = read ? [301, 302, 307, 308] : [307, 308]
  let url = new URL(address)
  for (let left = read ? MAX_REDIRECTS : 1; ; left--) {
    const response = await sendOnce(url.href, request)
    const location = followed.includes(response.status) ? response.header('location') : undefined
    const next = location === undefined ? undefined : parseUrl(location, url.href)
    if (left === 0 || next?.origin !== url.origin) return [response, redirectTarget(response, url)]
    await readResponseText(response)
    url = next
  }
}

/**
 * Parses a response. Undefined for text that is not JSON. Of several documents, one per line, the last one counts:
 * Gitea 1.15 answers a merge conflict with two, and the second is the error.
 */
export function parseResponse(text: string, exact = false): unknown {
  const parsed = (json: string): unknown => {
    try {
      return parseJson(exact ? quoteLongIntegers(json) : json)
    } catch {
      return undefined
    }
  }
  return parsed(text) ?? parsed(text.trimEnd().split('\n').at(-1) ?? '')
}

/** Integers with this many digits are exact as numbers. */
const EXACT_DIGITS = 15

function quoteLongIntegers(text: string): string {
  let quoted = ''
  let from = 0
  for (const { start, end } of jsonTokens(text)) {
    if (end - start <= EXACT_DIGITS || !/^\d+$/.test(text.slice(start, end))) continue
    quoted += `${text.slice(from, start)}"${text.slice(start, end)}"`
    from = end
  }
  return quoted + text.slice(from)
}

const INVALID_TOKEN = 'Invalid or expired token'

/**
 * Error for an unsuccessful response. A write that failed with 5xx may have been carried out, since a gateway may have
 * responded.
 */
function refusal(
  label: string,
  method: Method,
  answer: ResponseHead,
  message: string,
  { missingRight, elsewhere, signOn }: Pick<Refusal, 'missingRight' | 'elsewhere' | 'signOn'>,
): Refusal {
  const { status } = answer
  const retryAfter = retryAfterOf(answer, message)
  const refused = (kind: ErrorKind, text: string): Refusal =>
    new Refusal(kind, text, {
      providerStatus: status,
      upstreamMessage: message,
      missingRight,
      retryAfter,
      elsewhere,
      signOn,
    })
  if (status === 401) return refused('invalid_token', INVALID_TOKEN)
  if (retryAfter !== undefined)
    return refused('rate_limited', `${label} refused: ${message || 'too many requests'}`)
  if (status >= 400 && status < 500) {
    const { kind, text } = KINDS_OF_STATUSES[status] ?? { kind: 'unprocessable', text: `status ${status}` }
    // Code hosts also answer 404 for anything that the user may not see.
    const hint = status === 404 ? ' (no such repository or number, or no access to it)' : ''
    const words = `${label} refused: ${message || text}${hint}`
    if (signOn === undefined) return refused(kind, words)
    return refused(kind, `${words.replace(/\.$/, '')}. Authorize the token for the organization at ${signOn}`)
  }
  const redirected = status >= 300 && status < 400
  const to = elsewhere === undefined ? '' : ` to ${elsewhere}`
  const what = redirected
    ? `answered with a redirect that is not followed (${status})${to}`
    : `failed (${status})`
  // A server answers 303 to a write that it has carried out (RFC 9110 section 15.4.4).
  const doubt = redirected && status !== 303 ? '' : doubtOf(method)
  return refused('provider_failed', `${label} ${what}${message && `: ${message}`}${doubt}`)
}

/** Longest address of a sign-on, in characters. GitHub's have about 150. */
const MAX_ADDRESS = 1000

/**
 * Page on which the user lets the token into an organization with SAML sign-on: `X-GitHub-SSO: required; url=https://…` of
 * a 403 (docs.github.com, "Troubleshooting the REST API"). The header comes from outside: an address that is not of the
 * code host over https is ignored, as is one with credentials.
 */
function signOnAddress(
  { status, header }: ResponseHead,
  origin: string | undefined,
  secrets: readonly string[],
): string | undefined {
  const [, text = ''] = /^required; *url=([\x21-\x7e]+)$/.exec(header('x-github-sso') ?? '') ?? []
  const url = parseUrl(text)
  if (status !== 403 || url?.protocol !== 'https:' || url.origin !== origin) return undefined
  const isPlain = url.username === '' && url.password === '' && url.href.length <= MAX_ADDRESS
  return isPlain && !secrets.some((secret) => url.href.includes(secret)) ? url.href : undefined
}

/**
 * Right that the token lacks for the call. GitHub names the scopes (one is enough) and those of the token, and for a
 * fine-grained token the permission (https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api).
 */
function missingRightOf(
  { status, header }: ResponseHead,
  json: unknown,
  message: string,
): string | undefined {
  const { error, scope } = fieldsOf(json)
  // RFC 6750 section 3.1. GitLab names in the body the scopes that the call accepts.
  if (status === 403 && error === 'insufficient_scope' && typeof scope === 'string')
    return `one of the scopes ${scope.split(' ').flatMap(namesIn).join(', ')}`
  const permission = header('x-accepted-github-permissions')
  if (status === 403 && permission !== undefined && /not accessible by/.test(message))
    return `the permission ${namesIn(permission).join(', ')}`
  const held = header('x-oauth-scopes')
  const accepted = namesIn(header('x-accepted-oauth-scopes') ?? '')
  if (![403, 404].includes(status) || held === undefined || accepted.length === 0) return undefined
  const scopes = namesIn(held)
  if (scopes.some((scope) => accepted.includes(scope))) return undefined
  return `one of the scopes ${accepted.join(', ')}; it has ${scopes.join(', ') || 'none'}`
}

/** Well-formed names of a list in a header. */
function namesIn(list: string): string[] {
  return list.split(/[,;]/).flatMap((name) => /^[\w:=]{1,50}$/.exec(name.trim())?.[0] ?? [])
}

/** Wait after a limit that names no time, in milliseconds. GitHub asks for at least a minute. */
const DEFAULT_WAIT_MS = 60_000
/** Longest wait in seconds. No sensible limit asks for more than a day. */
const MAX_WAIT = 86_400

/**
 * Whole seconds to wait if the response is a rate limit, otherwise undefined. GitHub answers both of its limits with
 * 403 or 429: the primary one has `x-ratelimit-remaining: 0` and the instant it ends, the secondary one `retry-after`
 * or only a message (docs.github.com, "Rate limits for the REST API").
 */
function retryAfterOf({ status, header }: ResponseHead, message: string): number | undefined {
  const spent = header('x-ratelimit-remaining') === '0'
  const limited =
    status === 429 ||
    (status === 403 &&
      (spent || header('retry-after') !== undefined || /secondary rate limit/i.test(message)))
  if (!limited) return undefined
  const now = Date.now()
  const reset = header('x-ratelimit-reset') ?? ''
  const untilReset =
    spent && /^\d+$/.test(reset) ? millisecondsUntil(Number(reset) * 1000, header, now) : undefined
  const wait = parseRetryAfter(header, now) ?? untilReset ?? DEFAULT_WAIT_MS
  return Math.min(Math.max(Math.ceil(wait / 1000), 1), MAX_WAIT)
}

/** Longest message in characters: one or two lines of a terminal. */
const MAX_LENGTH = 300

const text = z.catch(z.string(), '')
const detail = z.union([
  z.string(),
  z.pipe(
    z.object({ resource: text, field: text, code: text, message: text }),
    z.transform(({ resource, field, code, message }) =>
      [[resource, field].filter(Boolean).join('.'), message || code].filter(Boolean).join(': '),
    ),
  ),
])
/** GitLab's may be an object: `{"base":["is invalid"]}`, `{"error":"Try again later"}`. */
const messageText = z.catch(
  z.union([
    z.string(),
    z.pipe(
      z.record(z.string(), z.unknown()),
      z.transform((fields) =>
        Object.entries(fields)
          .map(([name, value]) =>
            [...(name === 'error' || name === 'base' ? [] : [name]), [value].flat().join(', ')].join(' '),
          )
          .join(', '),
      ),
    ),
  ]),
  '',
)
const errorBody = z.pipe(
  z.object({
    message: messageText,
    errors: z.catch(z.array(z.catch(detail, '')), []),
    error: text,
    error_description: text,
  }),
  z.transform(({ message, errors, error, error_description: described }) => ({
    // An error of OAuth (RFC 6750 section 3), as GitLab answers it.
    message: message || described || error,
    errors,
  })),
)

/**
 * Message of a code host's error response, on one line of at most 300 characters, or an empty text. `errors` may
 * contain objects or strings. The text comes from outside: control and formatting characters are removed, and so are
 * `secrets`, which the code host may repeat.
 */
function upstreamMessage(json: unknown, secrets: readonly string[]): string {
  const { success, data } = errorBody.safeParse(json)
  if (!success) return ''
  const details = data.errors.filter(Boolean).join(', ')
  const whole = data.message && details ? `${data.message} (${details})` : data.message || details
  const plain = whole
    .replaceAll(/[\s\p{Zl}\p{Zp}]+/gu, ' ')
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}]/gu, '')
    .trim()
  const line = withoutSecrets(plain, secrets)
  // The cut may fall between two surrogates.
  return line.length > MAX_LENGTH ? `${line.slice(0, MAX_LENGTH - 1).replace(/\p{Cs}$/u, '')}…` : line
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text)
}

/**
 * Error for a call without a usable response; `why` is an error or text. A write that may have reached the host may
 * have been carried out.
 */
function noAnswer(
  label: string,
  method: Method,
  why: unknown,
  kind: ErrorKind = 'provider_failed',
): RelayError {
  const reason = describeWithoutQuote(why)
  if (isUnreached(why))
    return new RelayError(kind, `${label} could not be reached (${reason})`, { cause: why })
  const broken =
    why instanceof TooManyBytes ? 'gave an answer that is too large' : `gave no complete answer (${reason})`
  const what = typeof why === 'string' ? why : broken
  return new RelayError(kind, `${label} ${what}${doubtOf(method)}`, { cause: why })
}

function doubtOf(method: Method): string {
  return method === 'GET' ? '' : '; the request may have been carried out all the same'
}

function cancelled(reason: unknown): RelayError {
  return reason instanceof RelayError ? reason : new RelayError('cancelled', 'Cancelled', { cause: reason })
}
