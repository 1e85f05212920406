import type { Header } from '../http/headers.js'

/** The status of the forward of an entry to one target. `failed` is final until the delivery comes again. */
export type ForwardStatus = 'waiting' | 'succeeded' | 'failed'

export type Forward = {
  readonly status: ForwardStatus
  /** Answers that asked for a retry, since it began to wait. */
  readonly tries: number
  /** When it began to wait, in milliseconds. */
  readonly since: number
  /** Why it failed, for a person. */
  readonly reason?: string
}

/** By target id. An entry without any was never to be forwarded. */
export type Forwards = Readonly<Record<string, Forward>>

/** How many forwards have each status. */
export type ForwardCounts = Readonly<Record<ForwardStatus, number>>

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
  /** The start of the target's answer or output: the first 4096 bytes. */
  readonly answer: Uint8Array
  /** The answer's headers, without credentials; absent where there was no HTTP answer, and in attempts of earlier versions. */
  readonly headers?: readonly Header[]
  /** At most {@link MAX_ERROR} characters are stored. */
  readonly error: string | null
  readonly count: number
}

/** Enough for any message of the system. */
export const MAX_ERROR = 1024

/**
 * Which targets a delivery that came again is forwarded to: those where it failed and those that are new, all that do
 * not have it waiting, or none.
 */
export type OnDuplicate = 'if-failed' | 'always' | 'never'
