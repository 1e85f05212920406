import { probeDelay, type Random } from '../base/wait.js'
import { RelayError, isError } from '../base/errors.js'
import { ProxyAnswerError } from '../net/proxy.js'

/** Limits of the waits between two connections, in milliseconds. */
export const RECONNECT_LIMITS = {
  /** First wait after a failure. */
  retry: 1000,
  /**
   * Longest wait while the server is away. What senders bring meanwhile is lost at a smee server, and an attempt costs it
   * nothing.
   */
  soon: 2000,
  /** After which a connection counts as stable: the next one is opened at once. */
  steady: 10_000,
}

/** 15 minutes: a server that asks for a longer wait may have been repaired by then. */
const MAX_RETRY_AFTER_MS = 900_000

interface TunnelRefusalOptions {
  readonly retryAfter?: number | undefined
  readonly fix?: string | undefined
  /** True for an answer of another status that the next attempt does not change either. */
  readonly isLasting?: boolean
}

/** Error for an answer that refuses a request to a tunnel's server. */
export class TunnelRefusal extends RelayError {
  /** HTTP status of the answer. */
  readonly answered: number
  /** How the user ends it. Undefined where only the server can. */
  readonly fix: string | undefined
  /** True if another attempt changes nothing: a 4xx (RFC 9110 section 15.5), or what cannot be read. */
  readonly isLasting: boolean

  constructor(
    reason: string,
    answered: number,
    { retryAfter, fix, isLasting = isRefusal(answered) }: TunnelRefusalOptions = {},
  ) {
    super('provider_failed', reason, { retryAfter })
    this.answered = answered
    this.fix = fix
    this.isLasting = isLasting
  }
}

/** How a connection ended, or why none was opened. */
export interface Ended {
  /** Milliseconds for which the connection was open. Undefined if there was none. */
  readonly openFor?: number
  /** Why there was none. */
  readonly error?: unknown
}

/** The next attempt to connect. */
export interface NextAttempt {
  /** Its number since the last stable connection, from 1. */
  readonly attempt: number
  /** Milliseconds until then. */
  readonly ms: number
}

/**
 * Plans when to connect again: at once after a stable connection; within seconds, for as long as it takes, while the
 * server is away, whatever it is that fails (a name, a connection, an answer 5xx of the server or of a proxy before it);
 * after 1, 2, 4 … 60 s, or what `Retry-After` asks for, while the server refuses (4xx, RFC 9110 section 15.5), which
 * another attempt does not change. Waits vary by 20 %, so that all who listened do not come back at the same moment.
 */
export class Reconnection {
  readonly #limits: typeof RECONNECT_LIMITS
  readonly #random: Random
  /** Attempts since the last stable connection; failures since the server was last reached; refusals in a row. */
  #attempts = 0
  #failures = 0
  #refusals = 0

  constructor({
    limits,
    random = Math.random,
  }: { limits?: Partial<typeof RECONNECT_LIMITS>; random?: Random } = {}) {
    this.#limits = { ...RECONNECT_LIMITS, ...limits }
    this.#random = random
  }

  after({ openFor, error }: Ended): NextAttempt {
    const { retry, soon, steady } = this.#limits
    const isSteady = openFor !== undefined && openFor >= steady
    this.#attempts = isSteady ? 1 : this.#attempts + 1
    const [attempt, refused] = [this.#attempts, refusalIn(error)]
    // A server that accepts and closes must not be flooded: only the first such connection is replaced at once.
    const isFirst = openFor !== undefined && attempt === 1
    this.#failures = isFirst ? 0 : this.#failures + 1
    this.#refusals = refused ? this.#refusals + 1 : 0
    if (isFirst) return { attempt, ms: 0 }
    if (!refused) return { attempt, ms: probeDelay(this.#failures, this.#random, retry, soon) }
    return {
      attempt,
      ms: Math.max(probeDelay(this.#refusals, this.#random, retry), askedMs(refused.retryAfter)),
    }
  }
}

/** Milliseconds that a server asks for in seconds, at most 15 minutes. */
export function askedMs(retryAfter = 0): number {
  return Math.min(retryAfter * 1000, MAX_RETRY_AFTER_MS)
}

/** The refusal (4xx) of the server, or of the proxy of this network, that caused an error. */
function refusalIn(error: unknown): { readonly retryAfter?: number | undefined } | undefined {
  if (error instanceof TunnelRefusal && error.isLasting) return error
  if (error instanceof ProxyAnswerError && isRefusal(error.status)) return {}
  return isError(error) ? refusalIn(error.cause) : undefined
}

function isRefusal(status = 0): boolean {
  return status >= 400 && status <= 499
}
