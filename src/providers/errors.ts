import { RelayError, type ErrorKind } from '../base/errors.js'
import { AnswerTooLarge } from './answer.js'
import { retryAfterOf, type Headed } from './rate-limit.js'
import { explanation } from './said.js'

/** The statuses that mean something of their own; any other below 400 or above 499 is `provider_failed`. */
const KINDS: Record<number, { kind: ErrorKind; silent: string }> = {
  403: { kind: 'forbidden', silent: 'not allowed' },
  404: { kind: 'not_found', silent: 'Not Found' },
  405: { kind: 'conflict', silent: 'it cannot be merged' },
  409: { kind: 'conflict', silent: 'it conflicts with what is there' },
  410: { kind: 'gone', silent: 'it is gone' },
  422: { kind: 'unprocessable', silent: 'it is not valid' },
  // Gitea: the repository is archived.
  423: { kind: 'forbidden', silent: 'it is locked' },
}

/** Codes of errors after which nothing can have reached the provider. */
const UNREACHED =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_.*|ERR_SSL_WRONG_VERSION_NUMBER|(?:.*_)?CERT(?:_.*)?|UNABLE_TO_VERIFY_.*)$/

/** A provider's refusal; `providerStatus` is the status it answered with. */
export class Refusal extends RelayError {
  readonly providerStatus: number

  constructor(kind: ErrorKind, message: string, providerStatus: number, retryAfter?: number) {
    super(kind, message, { retryAfter })
    this.providerStatus = providerStatus
  }
}

/**
 * What an answer that is no success means. Its text holds what the provider said, and none of `secrets`; of a write that
 * failed on the provider's side it says that it may have happened, since a gateway may have given the answer.
 */
export function refusal(
  answer: Headed & { method: string; json: unknown },
  label: string,
  secrets: readonly string[],
): RelayError {
  const { status, method } = answer
  const said = explanation(answer.json, secrets)
  if (status === 401) return invalidToken()
  const retryAfter = retryAfterOf(answer, said)
  if (retryAfter !== undefined)
    return new Refusal('rate_limited', `${label} refused: ${said || 'too many requests'}`, status, retryAfter)
  const known = KINDS[status]
  if (known)
    return new Refusal(known.kind, `${label} refused: ${said || known.silent}${hint(status)}`, status)
  if (status >= 400 && status < 500)
    return new Refusal('unprocessable', `${label} refused: ${said || `status ${status}`}`, status)
  const redirected = status >= 300 && status < 400
  const what = redirected ? `answered with a redirect that is not followed (${status})` : `failed (${status})`
  const doubt = redirected ? '' : doubtOf(method)
  return new Refusal('provider_failed', `${label} ${what}${said && `: ${said}`}${doubt}`, status)
}

/** A provider answers 404 also for what it will not show. */
function hint(status: number): string {
  return status === 404 ? ' (no such repository or number, or no access to it)' : ''
}

export function invalidToken(): RelayError {
  return new RelayError('invalid_token', 'Invalid or expired token')
}

/**
 * No usable answer came. `why` is an error or words; for a write the text warns, where that is so, that it may have
 * been carried out.
 */
export function unanswered(
  label: string,
  method: string,
  why: unknown,
  kind: ErrorKind = 'provider_failed',
): RelayError {
  const code = codeOf(why)
  if (UNREACHED.test(code))
    return new RelayError(kind, `${label} could not be reached (${code})`, { cause: why })
  const what = typeof why === 'string' ? why : brokenOff(why, code)
  return new RelayError(kind, `${label} ${what}${doubtOf(method)}`, { cause: why })
}

function doubtOf(method: string): string {
  return method === 'GET' ? '' : '; the request may have been carried out all the same'
}

function brokenOff(error: unknown, code: string): string {
  return error instanceof AnswerTooLarge
    ? 'gave an answer that is too large'
    : `broke the connection (${code || 'no answer'})`
}

/** fetch says "fetch failed" and hides the code in the cause. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  if ('code' in error && typeof error.code === 'string') return error.code
  return codeOf(error.cause)
}
