/** Where the hand-on of an entry to one target stands. `failed` is final until the delivery comes again. */
export type HandOnState = 'waiting' | 'succeeded' | 'failed'

export type HandOn = {
  readonly state: HandOnState
  /** Answers that asked for a retry, since it began to wait. */
  readonly tries: number
  /** When it began to wait, in milliseconds. */
  readonly since: number
  /** Why it failed, for a person. */
  readonly reason?: string
}

/** By target id. An entry without any was never to be handed on. */
export type HandOns = Readonly<Record<string, HandOn>>

/** What one attempt came to. */
export type Outcome = 'succeeded' | 'retry' | 'refused' | 'unreachable' | 'timed out' | 'killed'

/** One attempt, or several in a row whose connection failed in the same way. */
export interface Attempt {
  /** When it began, in milliseconds; of several, the last. */
  readonly at: number
  readonly target: string
  readonly outcome: Outcome
  /** The HTTP status or exit code; null when there was none. */
  readonly status: number | null
  /** How long it took; of several, the last. */
  readonly ms: number
  /** The start of the target's answer or output: {@link MAX_ANSWER} bytes are kept. */
  readonly answer: Uint8Array
  /** {@link MAX_ERROR} characters are kept. */
  readonly error: string | null
  readonly count: number
}

/** Enough to see what a target said, in bytes. */
export const MAX_ANSWER = 4096
/** Enough for any message of the system. */
export const MAX_ERROR = 1024

/**
 * Which targets a delivery that came again is handed on to: those where it failed and those that are new, all that do
 * not have it waiting, or none.
 */
export type OnDuplicate = 'if-failed' | 'always' | 'never'
