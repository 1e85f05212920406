import type { Entry } from '../journal/delivery.js'
import type { Outcome } from '../journal/hand-on.js'

/** Where a route leads: an address that is posted to, or a command for the shell. */
export type Target =
  | { readonly kind: 'http'; readonly url: string }
  | { readonly kind: 'command'; readonly command: string }

/** What handing one delivery to one target came to. */
export interface Result {
  readonly outcome: Outcome
  /** The HTTP status or exit code; null when there was none. */
  readonly status: number | null
  /** The start of the answer or output. */
  readonly answer: Uint8Array
  /** Why, for a person, where the status does not tell. */
  readonly error: string | null
  /** Milliseconds after which the target asks to be tried again. */
  readonly retryAfter?: number | undefined
}

/** A target that is ready to be handed deliveries. Disposing of it lets what is under way end, and frees what it keeps open. */
export interface OpenTarget extends AsyncDisposable {
  /**
   * Hands on one delivery, once, within the target's time limit. It never rejects: all that goes wrong is a result, also
   * the abort of `signal` (`killed`).
   * @param attempt 1 for the first time that this target is tried with this delivery.
   */
  deliver(entry: Entry, attempt: number, options: { readonly signal: AbortSignal }): Promise<Result>
}

const NO_ANSWER = new Uint8Array()

/** The result of an attempt that was not answered. */
export function unanswered(outcome: 'unreachable' | 'timed out' | 'killed', error: string): Result {
  return { outcome, status: null, answer: NO_ANSWER, error }
}
