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
  /** Milliseconds after which the target asks for another attempt. */
  readonly retryAfter?: number | undefined
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
export interface TargetStatus {
  readonly id: string
  readonly label: string
  /**
   * `gone`: no longer configured; its entries wait for it to return. `elsewhere`: another relay of the service
   * forwards.
   */
  readonly state: 'up' | 'down' | 'gone' | 'elsewhere'
  /** Entries that wait or are in flight. */
  readonly queued: number
  /** Time at which it went down, or was removed. Milliseconds. */
  readonly since?: number
  /** Time of the next attempt at a target that is down. Milliseconds. */
  readonly nextProbeAt?: number
}

const NO_ANSWER = new Uint8Array()

/** Result of an attempt without a response. */
export function noResponse(outcome: 'unreachable' | 'timed out' | 'killed', error: string): DeliveryResult {
  return { outcome, status: null, answer: NO_ANSWER, error }
}
