import { type HeaderReader, NotHttpError } from './client.js'
import { ProxyAnswerError, ProxySettingError } from './proxy.js'

const BROKEN = 'connection closed before an answer'
const UNKNOWN_SIGNER =
  "its certificate is from an unknown authority: set NODE_EXTRA_CA_CERTS to a file with your company's certificate"
const TOO_MANY_HEADERS = 'the answer has more headers than relay accepts (16 KiB)'
/** Whatever the parser found wrong: its messages speak of its own rules. */
const NO_HTTP =
  'the answer is not HTTP: check that the address is http or https as the server expects, and the port right'
const NO_TLS = 'no TLS connection: check that the address is https and the port right'
const TOO_LATE = 'no answer in time'

/** The usual reasons in plain words, by the codes of Node and OpenSSL. */
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: BROKEN,
  EPIPE: BROKEN,
  ENOTFOUND: 'host not found',
  EAI_AGAIN: 'host could not be looked up',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  EMFILE: 'relay has too many files and connections open: raise its limit (ulimit -n)',
  ENFILE: 'this machine has too many files open',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: "its certificate is not valid yet: is this machine's clock right?",
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_SIGNER,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_SIGNER,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_SIGNER,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_SIGNER,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_SIGNER,
  HPE_HEADER_OVERFLOW: TOO_MANY_HEADERS,
  EPROTO: NO_TLS,
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
}

/** Codes of errors that mean that nothing reached the server. */
const UNREACHED =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ERR_TLS_.*|ERR_SSL_WRONG_VERSION_NUMBER|(?:.*_)?CERT(?:_.*)?|UNABLE_TO_VERIFY_.*)$/

/** Why a request got no response. Equal reasons have equal text, so that repetitions can be counted. */
export function describeConnectionError(error: unknown): string {
  const message = error instanceof Error ? error.message : ''
  return describeKnown(error) ?? (message || describeWithoutQuote(error))
}

/** The same for a request with a secret: leaves out the error's own message, which may quote the request. */
export function describeWithoutQuote(error: unknown): string {
  return describeKnown(error) ?? codeOf(error) ?? 'connection failed'
}

/** Whether no part of the request can have reached the server. */
export function isUnreached(error: unknown): boolean {
  return error instanceof ProxySettingError || UNREACHED.test(codeOf(error) ?? '')
}

function describeKnown(error: unknown): string | undefined {
  const { name }: { name?: unknown } = Object(error)
  if (name === 'TimeoutError') return TOO_LATE
  if (error instanceof ProxySettingError || error instanceof ProxyAnswerError) return error.message
  if (error instanceof NotHttpError) return NO_HTTP
  const code = codeOf(error) ?? ''
  return DESCRIPTIONS[code] ?? (code.startsWith('HPE_') ? NO_HTTP : undefined)
}

/** The code of the error or, as with errors of `fetch`, of its cause. */
function codeOf(error: unknown): string | undefined {
  const { code, cause }: { code?: unknown; cause?: unknown } = Object(error)
  if (typeof code === 'string') return code
  return cause instanceof Error ? codeOf(cause) : undefined
}

/** Milliseconds to wait by `Retry-After`: seconds or a date (RFC 9110 section 10.2.3). Undefined for anything else. `now`: milliseconds. */
export function parseRetryAfter(header: HeaderReader, now: number): number | undefined {
  const text = header('retry-after') ?? ''
  if (/^\d+$/.test(text)) return Number(text) * 1000
  return text.endsWith(' GMT') ? millisecondsUntil(Date.parse(text), header, now) : undefined
}

/** Milliseconds until an instant, at least 0, from the response's own `Date` if it has one: clocks may differ. Undefined for NaN. */
export function millisecondsUntil(instant: number, header: HeaderReader, now: number): number | undefined {
  const date = Date.parse(header('date') ?? '')
  const wait = instant - (Number.isNaN(date) ? now : date)
  return Number.isNaN(wait) ? undefined : Math.max(0, wait)
}
