import type { Header } from '../http/headers.js'
import type { Entry, Outcome } from '../journal/types.js'

/** Where a route leads: an address for POST requests, or a shell command. */
export type Target =
  | { readonly kind: 'http'; readonly url: string }
  | { readonly kind: 'command'; readonly command: string }

/** What sending one delivery to one target came to. */
export interface DeliveryResult {
  readonly outcome: Outcome
  /** The HTTP status or exit code; null when there was none. */
  readonly status: number | null
  /** The start of the answer or output. */
  readonly answer: Uint8Array
  /** The answer's headers, of an HTTP target. */
  readonly headers?: readonly Header[]
  /** Why, for a person, where the status does not say it. */
  readonly error: string | null
  /** Milliseconds after which the target asks for another attempt. */
  readonly retryAfter?: number | undefined
}

/** A target that can receive deliveries. Disposing of it, once no attempt is in flight, closes its connections. */
export interface OpenTarget extends AsyncDisposable {
  /**
   * Sends one delivery, once, within the target's time limit. It never rejects: every failure is a result, also the abort of
   * `signal` (`killed`).
   * @param attempt 1 for the first attempt to send this delivery to this target.
   */
  deliver(entry: Entry, attempt: number, options: { readonly signal: AbortSignal }): Promise<DeliveryResult>
}

/** What a running relay knows of a target. */
export interface TargetStatus {
  readonly id: string
  readonly label: string
  /** `gone`: no longer configured; its entries wait for it to return. `elsewhere`: another relay of the service forwards. */
  readonly state: 'up' | 'down' | 'gone' | 'elsewhere'
  /** Entries that wait or are in flight. */
  readonly queued: number
  /** When it went down, or was removed. Milliseconds. */
  readonly since?: number
  /** When a target that is down is attempted next. Milliseconds. */
  readonly nextProbeAt?: number
}

const NO_ANSWER = new Uint8Array()

/** The result of an attempt that was not answered. */
export function unanswered(outcome: 'unreachable' | 'timed out' | 'killed', error: string): DeliveryResult {
  return { outcome, status: null, answer: NO_ANSWER, error }
}
