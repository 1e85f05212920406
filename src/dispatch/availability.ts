import type { DeliveryResult, TargetStatus } from './target.js'

/** Unavailability of a target. Milliseconds; instants except `since` are of the monotonic clock. */
export interface Down {
  /** True if it is connected to, but does not answer. */
  readonly isHanging: boolean
  readonly since: number
  readonly began: number
  /** Last failure. */
  readonly at: number
  /** Milliseconds of this run during which it was down. A sleeping machine does not count. */
  readonly awake: number
  readonly failures: number
  readonly nextProbeAt: number
  /** Reason of the last failure. */
  readonly why: string
}

/** Failure of an attempt by the target's state. */
export interface TargetFailure extends Pick<Down, 'isHanging' | 'why'> {
  readonly isProbe: boolean
}

/** A target that goes down so soon after it was back goes up and down. Milliseconds. */
const RELAPSE_MS = 10_000
/** Time for which a target that goes up and down must answer before it is reported to be back, unless nothing waits any more. */
const STEADY_MS = 3000

/**
 * Decides when a target that was reported to be down is reported to be back, so that each change has one report: once it
 * has taken a delivery, not while it only asks to be tried again; and not each time while it goes up and down. Times are
 * of the monotonic clock, in milliseconds.
 */
export class Comeback {
  #reported: TargetStatus['state'] = 'up'
  /** When it was last reported to be back. */
  #back = -Infinity
  /** True if it went down again soon after that. */
  #isUnsteady = false
  /** Start of its final answers since it was last down. */
  #taking: number | undefined

  /** The state that was last reported. */
  get reported(): TargetStatus['state'] {
    return this.#reported
  }

  report(state: TargetStatus['state'], now: number): void {
    if (state === 'down') this.#isUnsteady = now < this.#back + RELAPSE_MS
    if (state === 'up' && this.#reported === 'down') this.#back = now
    this.#reported = state
  }

  answered({ outcome, status }: Pick<DeliveryResult, 'outcome' | 'status'>, now: number): void {
    // An answer that is not HTTP has no status.
    if (outcome !== 'retry' && status !== null) this.#taking ??= now
  }

  failed(): void {
    this.#taking = undefined
  }

  /** True for a target that may be reported to be up. @param isAllSent true if nothing waits for it any more */
  isBack(now: number, isAllSent: boolean): boolean {
    if (this.#reported !== 'down') return true
    if (this.#taking === undefined) return false
    return !this.#isUnsteady || isAllSent || now >= this.#taking + STEADY_MS
  }
}

/** Broken connections in a row, all for the same delivery, that count as one failed attempt of it. */
const BROKEN_AFTER = 3

/**
 * Tells a delivery that may be what ends the target's program, since the connection breaks before an answer again and
 * again, from a program that restarts, which breaks connections too.
 */
export class BrokenConnections {
  #n = 0
  #count = 0

  /** Counts an attempt for a delivery. True at each third connection in a row that broke for it. */
  isOften(n: number, isBroken: boolean): boolean {
    this.#count = isBroken ? (this.#n === n ? this.#count : 0) + 1 : 0
    this.#n = n
    if (this.#count < BROKEN_AFTER) return false
    this.#count = 0
    return true
  }
}
