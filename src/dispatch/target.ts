import type { TargetActivity } from '../instance/protocol.js'
import type { Header } from '../http/headers.js'
import type { Entry, AttemptOutcome } from '../journal/types.js'

/** Destination of a route: an address for POST requests, or a shell command. */
export type Target =
  | { readonly kind: 'http'; readonly url: string }
  | { readonly kind: 'command'; readonly command: string }

/** Result of sending one delivery to one target. */
export interface DeliveryResult {
  readonly outcome: AttemptOutcome
  /** HTTP status or exit code, or null. */
  readonly status: number | null
  /** First bytes of the response or output. */
  readonly answer: Uint8Array
  /** Headers of an HTTP target's response. */
  readonly headers?: readonly Header[]
  /** Reason for a person, if the status does not explain it. */
  readonly error: string | null
  /** True if the connection broke before an answer. The target may have read the request. */
  readonly isBroken?: boolean
  /**
   * True if that connection had served a request before: the target most likely closed it while it was idle (RFC 9112
   * section 9.3.1), which says nothing about the target.
   */
  readonly isStale?: boolean
  /** Answer for the sender, if the route replies and the target has answered. */
  readonly reply?: Reply | undefined
  /** Milliseconds after which the target asks for another attempt. */
  readonly retryAfter?: number | undefined
}

/** A target's answer for the sender, without headers of its connection, and without credentials. */
export interface Reply {
  readonly status: number
  readonly headers: readonly Header[]
  readonly body: Uint8Array
}

/** A target that can receive deliveries. Disposing of it, once no attempt is in flight, closes its connections. */
export interface OpenTarget extends AsyncDisposable {
  /**
   * Sends one delivery, once, within the target's time limit. Never rejects: every failure is a result, also the abort
   * of `signal` (`killed`).
   * @param attempt 1 for the first attempt to send this delivery to this target
   */
  deliver(entry: Entry, attempt: number, options: { readonly signal: AbortSignal }): Promise<DeliveryResult>
}

/** State of a target in a running relay. */
export interface TargetStatus extends TargetActivity {
  readonly id: string
  readonly label: string
  /** The user's name for a target that is no longer configured, when it was. */
  readonly name?: string
  /** Entries that wait or are being sent. One that is answered for good is none of them, even if that is not on disk yet. */
  readonly queued: number
  /** Entries in flight that are not answered for long, each reported once. */
  readonly slow?: readonly number[]
  /** Time at which it went down, or was removed. Milliseconds. */
  readonly since?: number
  /** Time of the next attempt at a target that is down. Milliseconds. */
  readonly nextProbeAt?: number
}

/** Number of entries that wait behind those that are being sent, or that are tried again. */
export function othersBehind({ queued, sending = [] }: TargetStatus): number {
  return queued - Math.max(1, sending.length)
}

/** Result of an attempt that was interrupted: for the reason of the abort, if that is a text. */
export function interruptedBy({ reason }: AbortSignal): DeliveryResult {
  return noResponse('killed', typeof reason === 'string' ? reason : 'relay was stopped')
}

/** End of the error of an attempt whose connection was stale ({@link DeliveryResult.isStale}). */
export const SENT_AGAIN = ', sent again at once'

/** True for an attempt that says nothing about the target, and that another one follows at once. */
export function isSentAgain({ error }: Pick<DeliveryResult, 'error'>): boolean {
  return error?.endsWith(SENT_AGAIN) === true
}

const NO_ANSWER = new Uint8Array()

/** Result of an attempt without a response. */
export function noResponse(outcome: 'unreachable' | 'timed out' | 'killed', error: string): DeliveryResult {
  return { outcome, status: null, answer: NO_ANSWER, error }
}
