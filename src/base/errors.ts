/**
 * Every failure that relay expects, with its HTTP status and exit code. A new failure is a new row here. The status is read in `http/router.ts`, the exit code in `cli/main.ts`,
 * and nowhere else.
 */
const KINDS = {
  usage: { status: 400, exit: 2 },
  settings: { status: 500, exit: 2 },
  bad_request: { status: 400, exit: 2 },
  invalid_event: { status: 400, exit: 2 },
  invalid_signature: { status: 401, exit: 5 },
  unauthenticated: { status: 401, exit: 4 },
  invalid_token: { status: 401, exit: 4 },
  forbidden: { status: 403, exit: 8 },
  not_found: { status: 404, exit: 8 },
  no_match: { status: 404, exit: 6 },
  method_not_allowed: { status: 405, exit: 2 },
  request_timeout: { status: 408, exit: 1 },
  conflict: { status: 409, exit: 8 },
  checks_failed: { status: 409, exit: 3 },
  gone: { status: 410, exit: 8 },
  too_large: { status: 413, exit: 2 },
  unsupported_media_type: { status: 415, exit: 2 },
  unprocessable: { status: 422, exit: 8 },
  rate_limited: { status: 429, exit: 8 },
  header_too_large: { status: 431, exit: 2 },
  internal: { status: 500, exit: 1 },
  target_failed: { status: 502, exit: 3 },
  provider_failed: { status: 502, exit: 8 },
  storage: { status: 503, exit: 1 },
  not_configured: { status: 503, exit: 2 },
  unavailable: { status: 503, exit: 1 },
  unhealthy: { status: 503, exit: 1 },
  provider_timeout: { status: 504, exit: 8 },
  timed_out: { status: 504, exit: 7 },
  cancelled: { status: 503, exit: 130 },
  broken_pipe: { status: 503, exit: 0 },
} as const satisfies Record<string, { status: number; exit: number }>

export type ErrorKind = keyof typeof KINDS

/** Whether a text from another process is the name of a kind. */
export function isErrorKind(text: unknown): text is ErrorKind {
  return typeof text === 'string' && Object.hasOwn(KINDS, text)
}

/**
 * The kinds whose message, in a command, has words of relay, what its caller has given, and names that the user has set: nothing that came from
 * outside. Each is about the call itself, or about what runs on this machine. Any other message may quote a code host, a sender or a file.
 */
const OWN_WORDS: ReadonlySet<ErrorKind> = new Set([
  'usage',
  'no_match',
  'timed_out',
  'too_large',
  'unavailable',
  'cancelled',
  'internal',
  'target_failed',
  'invalid_signature',
])
export type ErrorStatus = (typeof KINDS)[ErrorKind]['status']

export interface RelayErrorOptions extends ErrorOptions {
  /** Whole seconds after which the caller may try again; becomes `Retry-After`. */
  readonly retryAfter?: number | undefined
  /** For the log alone: what happened in detail, and what to do. Contains no secret and no part of a payload. */
  readonly detail?: string | undefined
  /** The message names nothing of this machine, so a client may read it, though its kind says otherwise. */
  readonly forClients?: boolean | undefined
}

/**
 * What clients are told of failures whose messages are for the user of this machine: they name its files, its database, and what to do
 * there.
 */
const FOR_CLIENTS: Readonly<Partial<Record<ErrorKind, string>>> = {
  storage: 'Storage failed. The log of relay serve says why',
  settings: 'relay cannot do that with its settings. The log of relay serve says why',
}

/**
 * A failure that relay expects and can explain. `message` is shown to people, so it says what failed and never contains a secret or a
 * payload; `clientMessage` is what an HTTP answer says. Information for the log alone goes into `cause`.
 */
export class RelayError extends Error {
  override readonly name: string = 'RelayError'
  readonly kind: ErrorKind
  readonly retryAfter: number | undefined
  readonly detail: string | undefined
  /** What a client may know: names no file of this machine. */
  readonly clientMessage: string

  constructor(kind: ErrorKind, message: string, options: RelayErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    this.kind = kind
    this.retryAfter = options.retryAfter
    this.detail = options.detail
    this.clientMessage = (options.forClients ? undefined : FOR_CLIENTS[kind]) ?? message
  }

  get status(): ErrorStatus {
    return KINDS[this.kind].status
  }

  get exitCode(): number {
    return KINDS[this.kind].exit
  }

  /** @internal Whether its message quotes nothing that came from outside. */
  get isOwnWords(): boolean {
    return OWN_WORDS.has(this.kind)
  }
}

/**
 * Converts anything thrown to a {@link RelayError}. The text of an unexpected error stays in `cause`, since it may contain
 * anything. A cancelled wait becomes `cancelled`, a wait past its limit `unavailable`.
 */
export function toRelayError(thrown: unknown): RelayError {
  if (thrown instanceof RelayError) return thrown
  const { name, cause } = thrown instanceof Error ? thrown : new Error()
  if (name === 'AbortError') {
    return cause instanceof RelayError ? cause : new RelayError('cancelled', 'Cancelled', { cause: thrown })
  }
  if (name === 'TimeoutError') return new RelayError('unavailable', 'Timed out', { cause: thrown })
  return new RelayError('internal', 'Internal error', { cause: thrown })
}

/** The code of an error from the system or from Node, such as `ENOENT`; undefined for any other error. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}

/** The number of the system's error, as in `os.constants.errno`: libuv has no code for some, such as EDQUOT. */
export function systemErrno(error: unknown): number | undefined {
  return error instanceof Error && 'errno' in error ? Math.abs(Number(error.errno)) : undefined
}

/** The code of such an error for a message, or `unknown reason`. */
export function errorReason(error: unknown): string {
  return errorCode(error) ?? 'unknown reason'
}
