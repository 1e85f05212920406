import { RelayError, type ErrorKind } from '../base/errors.js'
import { TooManyBytes } from '../base/read-bounded.js'
import { describeWithoutQuote, isUnreached } from '../net/errors.js'
import { retryAfterOf, type Headed } from './rate-limit.js'
import { upstreamMessage } from './upstream-message.js'

/**
 * Statuses with a kind of their own, and the text for an answer without a message. Any other 4xx is `unprocessable`, the
 * rest `provider_failed`.
 */
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

interface RefusalOptions {
  readonly providerStatus: number
  readonly missingRight?: string | undefined
  readonly upstreamMessage?: string
  readonly retryAfter?: number
}

/** A code host's refusal, with the status of its answer and its message on one line ('' for none). */
export class Refusal extends RelayError {
  readonly providerStatus: number
  /** What the token lacks, if the answer says so: `one of the scopes repo, admin:repo_hook; it has read:user`. */
  readonly missingRight: string | undefined
  readonly upstreamMessage: string

  constructor(
    kind: ErrorKind,
    message: string,
    { providerStatus, missingRight, upstreamMessage = '', retryAfter }: RefusalOptions,
  ) {
    super(kind, message, { retryAfter })
    this.missingRight = missingRight
    this.providerStatus = providerStatus
    this.upstreamMessage = upstreamMessage
  }
}

/**
 * The error for an unsuccessful answer. Its text contains the answer's message without `secrets`. For a write that failed with
 * 5xx it warns that the write may have happened, since a gateway may have sent the answer.
 */
export function refusal(
  answer: Headed & { method: string; json: unknown },
  label: string,
  secrets: readonly string[],
): RelayError {
  const { status, method } = answer
  const message = upstreamMessage(answer.json, secrets)
  const missingRight = missingRightOf(answer, message)
  const options = { providerStatus: status, upstreamMessage: message, missingRight }
  if (status === 401) return new Refusal('invalid_token', INVALID_TOKEN, options)
  const retryAfter = retryAfterOf(answer, message)
  if (retryAfter !== undefined)
    return new Refusal('rate_limited', `${label} refused: ${message || 'too many requests'}`, {
      ...options,
      retryAfter,
    })
  const known = KINDS[status]
  if (known)
    return new Refusal(known.kind, `${label} refused: ${message || known.text}${hint(status)}`, options)
  if (status >= 400 && status < 500)
    return new Refusal('unprocessable', `${label} refused: ${message || `status ${status}`}`, options)
  const redirected = status >= 300 && status < 400
  const what = redirected ? `answered with a redirect that is not followed (${status})` : `failed (${status})`
  // With 303, a server answers a write that it has carried out (RFC 9110 section 15.4.4).
  const doubt = redirected && status !== 303 ? '' : doubtOf(method)
  return new Refusal('provider_failed', `${label} ${what}${message && `: ${message}`}${doubt}`, options)
}

/**
 * What the token lacks for the call. GitHub names the scopes of which one is enough, and those of the token; to a fine-grained
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

/** Whether GitHub refused an App because there is none with its id: it was deleted. */
export function isUnknownApp(error: unknown): boolean {
  return error instanceof Refusal && error.upstreamMessage === 'Integration not found'
}

/** Code hosts also answer 404 for anything that this user may not see. */
function hint(status: number): string {
  return status === 404 ? ' (no such repository or number, or no access to it)' : ''
}

export function invalidToken(): RelayError {
  return new RelayError('invalid_token', INVALID_TOKEN)
}

const INVALID_TOKEN = 'Invalid or expired token'

/**
 * The error for a call without a usable answer. `why` is an error or text. For a write, the text warns that it may have been
 * carried out, unless it cannot have reached the code host.
 */
export function noAnswer(
  label: string,
  method: string,
  why: unknown,
  kind: ErrorKind = 'provider_failed',
): RelayError {
  if (isUnreached(why))
    return new RelayError(kind, `${label} could not be reached (${describeWithoutQuote(why)})`, {
      cause: why,
    })
  const what = typeof why === 'string' ? why : brokenOff(why)
  return new RelayError(kind, `${label} ${what}${doubtOf(method)}`, { cause: why })
}

function doubtOf(method: string): string {
  return method === 'GET' ? '' : '; the request may have been carried out all the same'
}

function brokenOff(error: unknown): string {
  return error instanceof TooManyBytes
    ? 'gave an answer that is too large'
    : `gave no complete answer (${describeWithoutQuote(error)})`
}
