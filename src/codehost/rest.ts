import { z, type ZodType } from 'zod'
import { type Cancellable, deadline } from '../base/wait.js'
import { type ErrorKind, RelayError } from '../base/errors.js'
import { parseUrl } from '../base/address.js'
import { TooManyBytes } from '../base/bytes.js'
import type { OAuthClient } from '../base/settings.js'
import { parseJson } from '../json/parse.js'
import { tokens } from '../json/text.js'
import {
  type HeaderReader,
  type OutboundRequest,
  type OutboundResponse,
  readText,
  type SendOnce,
} from '../net/client.js'
import { redirectTarget } from '../net/redirect.js'
import { describeWithoutQuote, isUnreached, millisecondsUntil, parseRetryAfter } from '../net/errors.js'
import type { CallingOptions, Headed, TokenSource } from './host.js'

/** One code host's REST API. */
export interface Api extends CallingOptions {
  /** The code host's name in messages. */
  readonly label: string
  /** The API's address, without a trailing slash. */
  readonly base: string
  readonly headers: Readonly<Record<string, string>>
  /** The error for a refusal that means something else here than by its status: GitLab answers 401 to a merge that is not allowed. */
  readonly explain?: (refusal: Refusal) => RelayError | undefined
}

/** Who calls: a user or an App by its token or, with `client`, an application (Basic, RFC 7617) about that token. */
interface Caller {
  readonly token: TokenSource
  readonly client?: OAuthClient
}

type Method = OutboundRequest['method']

interface Call<T> {
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
  /** Schema of a successful answer; one that is empty or not JSON is `undefined`. */
  readonly answer: ZodType<T>
  /** Gives integers of more than 15 digits as strings: numbers would round them. */
  readonly exact?: boolean
}

/** A successful answer. */
export interface Answer<T> {
  readonly status: number
  readonly header: HeaderReader
  readonly value: T
}

/** An answer of 50 of the longest comments, 64 KiB each, is below the limit of one answer. */
export const PAGE_SIZE = '50'
/** With {@link PAGE_SIZE}, 2,500 items: as many comments as GitHub allows on an issue. */
const MAX_PAGES = 50

/**
 * A path of an API: `` path`/repos/${owner}/${repo}` ``. Encodes each part. `..` survives encoding and would reach other paths with the
 * user's token, and so would a part of a name with slashes, which some servers decode.
 * @throws RelayError `bad_request` for a part that is empty, one dot or two dots
 */
export function path(texts: TemplateStringsArray, ...parts: readonly (string | number)[]): string {
  const names = parts.flatMap((part) => String(part).split('/'))
  if (names.some((name) => ['', '.', '..'].includes(name)))
    throw new RelayError('bad_request', 'A name in a provider path is empty, one dot or two dots')
  return String.raw({ raw: texts }, ...parts.map(encodeURIComponent))
}

/** An API as one caller uses it; without a caller, unauthenticated. The signal cancels every call. */
export class Rest {
  readonly label: string
  readonly #api: Api
  readonly #caller: Caller | undefined
  readonly #signal: AbortSignal | undefined

  constructor(api: Api, caller: Caller | undefined, { signal }: Cancellable = {}) {
    this.label = api.label
    this.#api = api
    this.#caller = caller
    this.#signal = signal
  }

  /**
   * Makes one call, once: it is never repeated after a failure, since a write may have been carried out although its answer was lost.
   * @throws RelayError of the kinds that `CodeHost` lists, {@link Refusal} for an unsuccessful answer; as the source of the token; the
   * code host's `refusal`, where it is not to be called
   */
  call<T>(method: Method, where: string, call: Call<T>): Promise<Answer<T>>
  call(method: Method, where: string, call?: Omit<Call<unknown>, 'answer'>): Promise<Answer<unknown>>
  async call(
    method: Method,
    where: string,
    { query, body, answer: schema = z.unknown(), exact = false }: Partial<Call<unknown>> = {},
  ): Promise<Answer<unknown>> {
    const { label, base, sendOnce, timeLimit, explain, refusal: notCalled } = this.#api
    if (notCalled) throw notCalled
    const { secrets, ...identity } = await credentialsOf(this.#caller)
    const headers = { ...this.#api.headers, ...identity.headers, ...(body && JSON_TYPE) }
    const address = `${base}${where}${query ? `?${new URLSearchParams(query).toString()}` : ''}`
    const signal = deadline(timeLimit, this.#signal)
    let answer: OutboundResponse
    let elsewhere: string | undefined
    let text: string
    try {
      const request = { method, headers, signal, ...(body && { body: JSON.stringify(body) }) }
      ;[answer, elsewhere] = await sendFollowing(sendOnce, address, request)
      text = await readText(answer)
    } catch (error) {
      if (this.#signal?.aborted) throw cancelled(this.#signal.reason)
      if (!signal.aborted) throw noAnswer(label, method, error)
      throw noAnswer(label, method, `did not answer within ${timeLimit / 1000} s`, 'provider_timeout')
    }
    const { status, header } = answer
    const json = parseAnswer(text, exact)
    if (status < 200 || status > 299) {
      const to = elsewhere === undefined ? undefined : withoutSecrets(elsewhere, secrets)
      const refused = refusal(label, method, answer, upstreamMessage(json, secrets), to)
      throw explain?.(refused) ?? refused
    }
    const { success, data } = schema.safeParse(json)
    if (!success) throw noAnswer(label, method, 'gave an answer that was not understood')
    return { status, header, value: data }
  }

  /**
   * The items of a list, read page by page as long as an answer says that there are more.
   * @throws RelayError as {@link call}; `unprocessable` if there are still more after 50 pages
   */
  async *items<T>(
    where: string,
    answer: ZodType<readonly T[]>,
    query: Readonly<Record<string, string>>,
    hasMore: (page: Answer<readonly T[]>) => boolean = ({ header }) => nextLink(header) !== undefined,
  ): AsyncGenerator<T> {
    for (let page = 1; page <= MAX_PAGES; page++) {
      const one = await this.call('GET', where, { query: { ...query, page: String(page) }, answer })
      yield* one.value
      if (!hasMore(one)) return
    }
    throw new RelayError('unprocessable', `${this.label} lists more than relay reads (${MAX_PAGES} pages)`)
  }

  /** All {@link items}. */
  async all<T>(...list: Parameters<typeof this.items<T>>): Promise<readonly T[]> {
    const all: T[] = []
    for await (const item of this.items(...list)) all.push(item)
    return all
  }
}

/**
 * Address of the next page in a `Link` header (RFC 8288; docs.github.com, "Using pagination in the REST API"). Only its query is to
 * be used.
 */
export function nextLink(header: HeaderReader): URL | undefined {
  const [, address = ''] = /<([^<>]*)>; *rel="next"/.exec(header('link') ?? '') ?? []
  return parseUrl(address)
}

const JSON_TYPE = { 'content-type': 'application/json' }

/** The headers that say who calls, and the secrets in them, which the code host may repeat and messages must not contain. */
async function credentialsOf(caller: Caller | undefined): Promise<{
  readonly headers: Readonly<Record<string, string>>
  readonly secrets: readonly string[]
}> {
  // GitHub refuses calls without one.
  const agent = { 'user-agent': 'webhook-relay' }
  if (!caller) return { headers: agent, secrets: [] }
  const { token: source, client } = caller
  const token = typeof source === 'string' ? source : await source()
  // A header cannot hold any other token; undici's error would quote it.
  if (!/^[\x21-\x7e]+$/.test(token)) throw new RelayError('invalid_token', INVALID_TOKEN)
  if (!client) return { headers: { ...agent, authorization: `Bearer ${token}` }, secrets: [token] }
  const basic = Buffer.from(`${client.id}:${client.secret.reveal()}`).toString('base64')
  const secrets = [token, basic, client.secret.reveal()]
  return { headers: { ...agent, authorization: `Basic ${basic}` }, secrets }
}

/** A renamed repository takes one redirect; more than a few are a loop. */
const MAX_REDIRECTS = 3

/**
 * Follows redirects only within the origin, so that the token in the headers reaches no other. A GET follows up to three. A write
 * follows one, and only with 307 or 308, which keep method and body (RFC 9110 section 15.4): after a 301 or 302, clients repeat it
 * as a GET. Returns a redirect that it does not follow, and where that leads.
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
    await readText(response)
    url = next
  }
}

/**
 * Undefined for text that is not JSON. Of several documents, one per line, the last one counts: Gitea 1.15 answers a merge conflict with
 * two, the second being the error.
 */
export function parseAnswer(text: string, exact = false): unknown {
  const parsed = (json: string): unknown => {
    try {
      return parseJson(exact ? quoteLongIntegers(json) : json)
    } catch {
      return undefined
    }
  }
  return parsed(text) ?? parsed(text.trimEnd().split('\n').at(-1) ?? '')
}

/** All integers of so many digits are exact as numbers. */
const EXACT_DIGITS = 15

function quoteLongIntegers(text: string): string {
  let quoted = ''
  let from = 0
  for (const { start, end } of tokens(text)) {
    if (end - start <= EXACT_DIGITS || !/^\d+$/.test(text.slice(start, end))) continue
    quoted += `${text.slice(from, start)}"${text.slice(start, end)}"`
    from = end
  }
  return quoted + text.slice(from)
}

/** A code host's refusal. */
export class Refusal extends RelayError {
  /** Status of its answer. */
  readonly providerStatus: number
  /** What the token lacks, if the answer says so: `one of the scopes repo, admin:repo_hook; it has read:user`. */
  readonly missingRight: string | undefined
  /** Its message on one line, '' for none. */
  readonly upstreamMessage: string
  /** Where it redirects, which the message names. */
  readonly elsewhere: string | undefined

  constructor(
    kind: ErrorKind,
    message: string,
    answer: Pick<Refusal, 'providerStatus'> &
      Partial<Pick<Refusal, 'missingRight' | 'upstreamMessage' | 'retryAfter' | 'elsewhere'>>,
  ) {
    super(kind, message, { retryAfter: answer.retryAfter })
    this.providerStatus = answer.providerStatus
    this.missingRight = answer.missingRight
    this.upstreamMessage = answer.upstreamMessage ?? ''
    this.elsewhere = answer.elsewhere
  }

  /** @internal Its message quotes the code host, unless that said what relay itself would. */
  override get isOwnWords(): boolean {
    const own = ['', ...Object.values(KINDS).map(({ text }) => text)]
    return own.includes(this.upstreamMessage) && this.elsewhere === undefined
  }
}

export function isNotFound(error: unknown): boolean {
  return error instanceof RelayError && error.kind === 'not_found'
}

const INVALID_TOKEN = 'Invalid or expired token'

/** Statuses below 500 with a kind of their own, and the text for an answer without a message. */
const KINDS: Record<number, { kind: ErrorKind; text: string }> = {
  403: { kind: 'forbidden', text: 'not allowed' },
  404: { kind: 'not_found', text: 'Not Found' },
  405: { kind: 'conflict', text: 'it cannot be merged' },
  409: { kind: 'conflict', text: 'it conflicts with the current state' },
  410: { kind: 'gone', text: 'it is gone' },
  422: { kind: 'unprocessable', text: 'it is not valid' },
  // Gitea: the repository is archived.
  423: { kind: 'forbidden', text: 'it is locked' },
}

/** The error for an unsuccessful answer. A write that failed with 5xx may have happened: a gateway may have sent the answer. */
function refusal(
  label: string,
  method: Method,
  answer: Headed,
  message: string,
  elsewhere: string | undefined,
): Refusal {
  const { status } = answer
  const missingRight = missingRightOf(answer, message)
  const retryAfter = retryAfterOf(answer, message)
  const refused = (kind: ErrorKind, text: string): Refusal =>
    new Refusal(kind, text, {
      providerStatus: status,
      upstreamMessage: message,
      missingRight,
      retryAfter,
      elsewhere,
    })
  if (status === 401) return refused('invalid_token', INVALID_TOKEN)
  if (retryAfter !== undefined)
    return refused('rate_limited', `${label} refused: ${message || 'too many requests'}`)
  if (status >= 400 && status < 500) {
    const { kind, text } = KINDS[status] ?? { kind: 'unprocessable', text: `status ${status}` }
    // Code hosts also answer 404 for anything that this user may not see.
    const hint = status === 404 ? ' (no such repository or number, or no access to it)' : ''
    return refused(kind, `${label} refused: ${message || text}${hint}`)
  }
  const redirected = status >= 300 && status < 400
  const to = elsewhere === undefined ? '' : ` to ${elsewhere}`
  const what = redirected
    ? `answered with a redirect that is not followed (${status})${to}`
    : `failed (${status})`
  // With 303, a server answers a write that it has carried out (RFC 9110 section 15.4.4).
  const doubt = redirected && status !== 303 ? '' : doubtOf(method)
  return refused('provider_failed', `${label} ${what}${message && `: ${message}`}${doubt}`)
}

/**
 * What the token lacks for the call. GitHub names the scopes (one is enough) and those of the token; to a fine-grained
 * token the permission (https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api).
 */
function missingRightOf({ status, header }: Headed, message: string): string | undefined {
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

/** The well-formed names of a list in a header. */
function namesIn(list: string): string[] {
  return list.split(/[,;]/).flatMap((name) => /^[\w:=]{1,50}$/.exec(name.trim())?.[0] ?? [])
}

/** Milliseconds. GitHub asks to wait at least a minute after a secondary limit that names no time. */
const DEFAULT_WAIT_MS = 60_000
/** Seconds; no sensible limit asks for longer than a day. */
const MAX_WAIT = 86_400

/**
 * Whole seconds to wait when the answer is a rate limit, otherwise undefined. GitHub answers both of its limits with
 * 403 or 429: the primary one has `x-ratelimit-remaining: 0` and the instant it ends, the secondary one `retry-after`
 * or only a message (docs.github.com, "Rate limits for the REST API").
 */
function retryAfterOf({ status, header }: Headed, message: string): number | undefined {
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

/** Characters: one line of a terminal or two. */
const MAX_LENGTH = 300

const text = z.string().catch('')
const detail = z.union([
  z.string(),
  z
    .object({ resource: text, field: text, code: text, message: text })
    .transform(({ resource, field, code, message }) =>
      [[resource, field].filter(Boolean).join('.'), message || code].filter(Boolean).join(': '),
    ),
])
const errorBody = z.object({ message: text, errors: z.array(detail.catch('')).catch([]) })

/**
 * The message of a code host's error answer, on one line of at most 300 characters; empty when it has none. `errors` may hold
 * objects or strings. The text comes from outside: control and formatting characters are removed, and so are `secrets`
 * in case the code host repeats them.
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
  // The cut may fall between the two halves of a character.
  return line.length > MAX_LENGTH ? `${line.slice(0, MAX_LENGTH - 1).replace(/\p{Cs}$/u, '')}…` : line
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text)
}

/** The error for a call without a usable answer: `why` is an error or text. A write that may have reached the host may have happened. */
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
