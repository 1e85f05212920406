import { isError } from '../base/errors.js'
import { type HeaderReader, NotHttpError } from './client.js'
import { NetFailure } from './failure.js'
import { ProxySettingError } from './proxy.js'
import { describeTls, TlsError } from './tls.js'
import { fieldsOf } from '../json/parse.js'

const BROKEN = 'connection closed before an answer'
const TOO_MANY_HEADERS = 'the answer has more headers than relay accepts (256 KiB)'
/** Replaces the parser's own messages, which speak of its internal rules. */
const NO_HTTP =
  'the answer is not HTTP: check that the address is http or https as the server expects, and the port right'
const NO_HTTP_BUT_TLS = 'the answer is not HTTP but TLS: set https:// in the address'
const TOO_LATE = 'no answer in time'

/** Descriptions of the usual failures, by Node's error codes. */
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: BROKEN,
  EPIPE: BROKEN,
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host could not be looked up',
  ETIMEDOUT: 'no connection in time',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  EMFILE: 'relay has too many files and connections open: raise its limit (ulimit -n)',
  ENFILE: 'this machine has too many files open',
  HPE_HEADER_OVERFLOW: TOO_MANY_HEADERS,
}

/** Error codes that mean that nothing reached the server. */
const UNREACHED: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/** Explains why a request got no response. Equal reasons have equal text, so that repetitions can be counted. */
export function describeConnectionError(error: unknown): string {
  const message = isError(error) ? error.message : ''
  return describeKnown(error) ?? (message || describeWithoutQuote(error))
}

/**
 * Like {@link describeConnectionError}, for a request with a secret: omits the error's own message, which may quote the
 * request.
 */
export function describeWithoutQuote(error: unknown): string {
  return describeKnown(error) ?? codeOf(error) ?? 'connection failed'
}

/** True if no part of the request can have reached the server. */
export function isUnreached(error: unknown): boolean {
  if (error instanceof TlsError) return error.isUnreached
  return error instanceof ProxySettingError || UNREACHED.has(codeOf(error) ?? '')
}

function describeKnown(error: unknown): string | undefined {
  if (fieldsOf(error)['name'] === 'TimeoutError') return TOO_LATE
  if (error instanceof NetFailure) return error.message
  if (error instanceof NotHttpError && error.isTls) return NO_HTTP_BUT_TLS
  const coded = withCode(error)
  const code = codeOf(coded) ?? ''
  const isHttp = !(error instanceof NotHttpError || code.startsWith('HPE_'))
  return DESCRIPTIONS[code] ?? (isHttp ? describeTls(coded) : NO_HTTP)
}

function codeOf(error: unknown): string | undefined {
  const { code } = fieldsOf(withCode(error))
  return typeof code === 'string' ? code : undefined
}

/** Returns the error or, as for errors of `fetch`, the cause that has a code. */
function withCode(error: unknown): unknown {
  const { code, cause } = fieldsOf(error)
  return typeof code === 'string' || !isError(cause) ? error : withCode(cause)
}

/** One day in milliseconds: no server means longer, and a timer of 25 days or more ends at once. */
const MAX_WAIT_MS = 86_400_000

/**
 * Parses `Retry-After`, in seconds or as a date (RFC 9110 section 10.2.3), to milliseconds, at most a day. Undefined
 * for anything else.
 * @param now milliseconds
 */
export function parseRetryAfter(header: HeaderReader, now: number): number | undefined {
  const text = header('retry-after') ?? ''
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, MAX_WAIT_MS)
  return text.endsWith(' GMT') ? millisecondsUntil(Date.parse(text), header, now) : undefined
}

/**
 * Milliseconds until an instant, from 0 to a day. Relative to the response's own `Date` if it has one, since clocks may
 * differ. Undefined for NaN.
 */
export function millisecondsUntil(instant: number, header: HeaderReader, now: number): number | undefined {
  const date = Date.parse(header('date') ?? '')
  const wait = instant - (Number.isNaN(date) ? now : date)
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(0, wait), MAX_WAIT_MS)
}
