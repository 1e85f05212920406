import { randomBytes } from 'node:crypto'
import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Clock } from '../base/time.js'
import { discardBody, type HttpEnv, readBody, type ReceivedContext } from '../http/body.js'
import { isObject, parseJson } from '../json/parse.js'

// GitHub's HTTP conventions that all routes share: errors, input, headers, pages.

export type JsonObject = Readonly<Record<string, unknown>>

/** Version of GitHub Enterprise Server that the sandbox emulates. */
export const SERVER_VERSION = '3.19.0'
/** GitHub's requests per user and hour. Reported but not enforced: to exceed it, set a fault. */
const RATE_LIMIT = 5000
const HOUR_S = 3600
/** Body limit. The largest comment has 65,536 characters, each up to 12 bytes when escaped. */
const BODY_LIMIT = 1_048_576
/** GitHub's page sizes (https://docs.github.com/rest/using-the-rest-api/using-pagination-in-the-rest-api). */
const PAGE_SIZE = { default: 30, max: 100 }

/** Error response with GitHub's text. Routes throw it, {@link answerError} sends it. */
export class GitHubError extends Error {
  override readonly name = 'GitHubError'
  readonly status: ContentfulStatusCode
  /** `errors` of a 422 response. */
  readonly errors: readonly JsonObject[]

  constructor(status: ContentfulStatusCode, message: string, errors: readonly JsonObject[] = []) {
    super(message)
    this.status = status
    this.errors = errors
  }
}

/** Error response for an invalid field. `code`: missing_field, invalid, custom or unprocessable. */
export function invalidField(
  resource: string,
  error: { code: string; field?: string; message?: string },
): GitHubError {
  return new GitHubError(422, 'Validation Failed', [{ resource, ...error }])
}

/** Sends GitHub's error body: `{message, errors?, documentation_url, status}`, where `status` is a string. */
export async function answerError(c: Context<HttpEnv>, thrown: unknown, log: Log): Promise<Response> {
  await discardBody(c.env)
  // Other errors come from the shared HTTP code, such as a body over the limit, or are bugs.
  const error = thrown instanceof GitHubError ? thrown : toRelayError(thrown)
  if ('kind' in error && error.kind === 'internal') log.error('The sandbox failed to respond', thrown)
  const { status, message } = error
  const more = 'errors' in error && error.errors.length > 0 ? { errors: error.errors } : {}
  const documentation_url = 'https://docs.github.com/rest'
  return c.json({ message, ...more, documentation_url, status: String(status) }, status)
}

/** Returns `value`. @throws GitHubError 404 when it is undefined. */
export function requireFound<T>(value: T | undefined): T {
  if (value === undefined) throw new GitHubError(404, 'Not Found')
  return value
}

/** Reads the request's JSON object. An absent body is an empty object. @throws GitHubError 400 for any other body. */
export async function readObject(c: ReceivedContext): Promise<JsonObject> {
  const value = parseJsonText(new TextDecoder().decode(await readBody(c, BODY_LIMIT)) || '{}')
  if (value === undefined) throw new GitHubError(400, 'Problems parsing JSON')
  if (!isObject(value)) throw new GitHubError(400, 'Body should be a JSON object')
  return value
}

/** Parses JSON text. Undefined for other text. */
export function parseJsonText(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

/** Reads a field that is text or absent. @throws GitHubError 422 */
export function readTextField(body: JsonObject, field: string): string | undefined {
  const value = body[field]
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined
  const message = `For 'properties/${field}', ${JSON.stringify(value)} is not a string.`
  throw new GitHubError(422, `Invalid request.\n\n${message}`)
}

/** Reads the request's bearer token. @throws GitHubError 401 without one */
export function bearerOf(c: Context): string {
  const [, token] = /^(?:bearer|token) +(\S+) *$/i.exec(c.req.header('authorization') ?? '') ?? []
  if (token === undefined) throw new GitHubError(401, 'Requires authentication')
  return token
}

/** Sets the headers that every response of the REST API has. */
export function setCommonHeaders(c: Context, clock: Clock): void {
  const reset = (Math.floor(clock() / 1000 / HOUR_S) + 1) * HOUR_S
  const headers = {
    'X-GitHub-Enterprise-Version': `enterprise-server@${SERVER_VERSION}`,
    'X-GitHub-Request-Id': randomBytes(8).toString('hex').toUpperCase(),
    'X-RateLimit-Limit': String(RATE_LIMIT),
    'X-RateLimit-Remaining': String(RATE_LIMIT - 1),
    'X-RateLimit-Reset': String(reset),
  }
  for (const [name, value] of Object.entries(headers)) c.header(name, value)
}

/**
 * Resolves once the response has been sent or its connection has closed, at once for an in-process call. A webhook
 * waits for it, so that a client sees the response before the event that it caused.
 */
export function responseSent(c: Pick<Context<HttpEnv>, 'env'>): Promise<void> {
  const outgoing: HttpEnv['Bindings']['outgoing'] | undefined = c.env?.outgoing
  if (!outgoing || outgoing.closed) return Promise.resolve()
  return new Promise((resolve) => outgoing.once('close', resolve))
}

/** Selects the requested page of a list, and sets `Link` if there is a next one. */
export function pageOf<T>(c: Context, all: readonly T[]): readonly T[] {
  const size = pageSize(c)
  const number = Math.max(Math.trunc(Number(c.req.query('page'))) || 1, 1)
  if (all.length > number * size) linkNext(c, 'page', String(number + 1))
  return all.slice((number - 1) * size, number * size)
}

/**
 * Selects the page of a list that starts at the query's cursor, `v1_` and the entry's id. The newest and so largest ids
 * come first, so that pages stay the same while new entries arrive.
 * @throws GitHubError 400
 */
export function cursorPageOf<T extends { readonly id: bigint }>(c: Context, all: readonly T[]): readonly T[] {
  const cursor = c.req.query('cursor')
  const [, from] = /^v1_(\d{1,20})$/.exec(cursor ?? '') ?? []
  if (cursor && from === undefined) throw new GitHubError(400, 'Invalid cursor')
  const rest = from === undefined ? all : all.filter(({ id }) => id <= BigInt(from))
  const size = pageSize(c)
  const next = rest[size]
  if (next) linkNext(c, 'cursor', `v1_${next.id}`)
  return rest.slice(0, size)
}

function pageSize(c: Context): number {
  const wanted = Math.trunc(Number(c.req.query('per_page'))) || PAGE_SIZE.default
  return Math.min(Math.max(wanted, 1), PAGE_SIZE.max)
}

/** Sets a `Link` to this address with another value of a parameter (RFC 8288). */
function linkNext(c: Context, parameter: string, value: string): void {
  const url = new URL(c.req.url)
  url.searchParams.set(parameter, value)
  c.header('Link', `<${url.href}>; rel="next"`)
}
