/**
 * Every failure that relay expects, with its HTTP status and exit code. A new failure is a new entry here. Only
 * `http/router.ts` reads the status, and only `cli/main.ts` the exit code.
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
  full: { status: 507, exit: 1 },
  cancelled: { status: 503, exit: 130 },
  broken_pipe: { status: 503, exit: 0 },
} as const satisfies Record<string, { status: number; exit: number }>

export type ErrorKind = keyof typeof KINDS

/** True if a text from another process is the name of a kind. */
export function isErrorKind(text: unknown): text is ErrorKind {
  return ERROR_KINDS.some((kind) => kind === text)
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table are the kinds
export const ERROR_KINDS = Object.keys(KINDS) as readonly ErrorKind[]

/**
 * Kinds whose messages contain only relay's own words, the caller's input, and names from the user's settings. Messages
 * of all other kinds may quote a code host, a sender or a file, so they count as text from outside.
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
  /** Details and advice for the log alone. Contains no secret and no part of a payload. */
  readonly detail?: string | undefined
  /** Lets clients read the message although its kind forbids it, because it names nothing of this machine. */
  readonly forClients?: boolean | undefined
  /** Set if the message quotes text from outside, although those of its kind do not. */
  readonly quotesOutside?: boolean | undefined
}

/** Messages that clients get instead of the real ones, which name files, a database and commands of this machine. */
const FOR_CLIENTS: Readonly<Partial<Record<ErrorKind, string>>> = {
  storage: 'Storage failed. The log of relay serve says why',
  settings: 'relay cannot do that with its settings. The log of relay serve says why',
}

/**
 * A failure that relay expects and can explain. `message` is shown to users: it says what failed and never contains a
 * secret or a payload. `clientMessage` is for HTTP responses. Information for the log alone goes into `cause`.
 */
export class RelayError extends Error {
  override readonly name: string = 'RelayError'
  readonly kind: ErrorKind
  readonly retryAfter: number | undefined
  readonly detail: string | undefined
  /** Message for HTTP clients. Names no file of this machine. */
  readonly clientMessage: string
  readonly #quotesOutside: boolean

  /** @throws TypeError for a kind that does not exist */
  constructor(kind: ErrorKind, message: string, options: RelayErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause })
    if (!Object.hasOwn(KINDS, kind)) throw new TypeError(`There is no kind of errors ${JSON.stringify(kind)}`)
    this.kind = kind
    this.retryAfter = options.retryAfter
    this.detail = options.detail
    this.#quotesOutside = options.quotesOutside ?? false
    this.clientMessage = (options.forClients ? undefined : FOR_CLIENTS[kind]) ?? message
  }

  get status(): ErrorStatus {
    return KINDS[this.kind].status
  }

  get exitCode(): number {
    return KINDS[this.kind].exit
  }

  /** True if the message quotes nothing from outside. */
  get isOwnWords(): boolean {
    return !this.#quotesOutside && OWN_WORDS.has(this.kind)
  }
}

/**
 * Converts anything thrown to a {@link RelayError}. The text of an unexpected error stays in `cause`, since it may
 * contain anything. A cancelled wait becomes `cancelled`, an expired one `unavailable`.
 */
export function toRelayError(thrown: unknown): RelayError {
  if (thrown instanceof RelayError) return thrown
  const { name, cause } = isError(thrown) ? thrown : new Error()
  if (name === 'AbortError') {
    return cause instanceof RelayError ? cause : new RelayError('cancelled', 'Cancelled', { cause: thrown })
  }
  if (name === 'TimeoutError') return new RelayError('unavailable', 'Timed out', { cause: thrown })
  return new RelayError('internal', 'Internal error', { cause: thrown })
}

/**
 * True for an error of any realm. Jest runs a program in a realm of its own, where what Node throws is no instance of
 * `Error`.
 */
export function isError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]'
}

/** Code of an error from the system or Node, such as `ENOENT`. Undefined for any other error. */
export function errorCode(error: unknown): string | undefined {
  return isError(error) && 'code' in error ? String(error.code) : undefined
}

/** Number of a system error, as in `os.constants.errno`. Needed because libuv has no code for some, such as EDQUOT. */
export function systemErrno(error: unknown): number | undefined {
  return isError(error) && 'errno' in error ? Math.abs(Number(error.errno)) : undefined
}

/** Code of such an error for a message, or `unknown reason`. */
export function errorReason(error: unknown): string {
  return errorCode(error) ?? 'unknown reason'
}
