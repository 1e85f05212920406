import { RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { Owner } from '../dispatch/owner.js'
import type { Step } from '../store/sql.js'
import type { Doing, Duty } from './duties.js'
import type { Stopwatch } from './stopwatch.js'

export interface LeasedDutyParts {
  readonly duty: Duty
  /** The step that requires this relay to have the lease. */
  readonly fence: (epoch: number) => Step
  /** Whether no other relay can have taken a lease that this one had when the stopwatch was started. */
  readonly isCurrent: (since: Stopwatch) => boolean
  /** Resolves when leases were renewed, or the signal aborts. */
  readonly renewed: (signal: AbortSignal) => Promise<void>
  readonly log: Log
}

interface Run {
  readonly epoch: number
  /** Since the last time that this relay had the lease for sure. */
  since: Stopwatch
  readonly lost: AbortController
  /** Aborts when the duty ends, lost or not. */
  readonly ending: AbortController
  doing: Promise<Doing | undefined>
  isIdle: () => boolean
}

/** A duty that this relay does while it holds the lease. */
export class LeasedDuty {
  readonly #parts: LeasedDutyParts
  #run: Run | undefined
  #ended: Promise<void> | undefined
  #isElsewhere = false

  constructor(parts: LeasedDutyParts) {
    this.#parts = parts
  }

  get what(): string {
    return this.#parts.duty.what
  }

  /** Of the lease with which it is being done. */
  get epoch(): number | undefined {
    return this.#run?.epoch
  }

  /** Whether it is neither being done nor about to end. */
  get isOff(): boolean {
    return !this.#run && !this.#ended
  }

  get isIdle(): boolean {
    return this.#run?.isIdle() === true
  }

  /** `since`: started before the lease was asked for. */
  begin(epoch: number, since: Stopwatch): void {
    const [lost, ending] = [new AbortController(), new AbortController()]
    const doing = Promise.resolve(undefined)
    const run: Run = { epoch, since, lost, ending, isIdle: () => false, doing }
    this.#run = run
    this.#isElsewhere = false
    run.doing = this.#start(run)
  }

  /** This relay still had the lease after `since` was started. */
  renew(since: Stopwatch): void {
    if (this.#run) this.#run.since = since
  }

  /** Another relay has it. */
  passed(): void {
    if (!this.isOff || this.#isElsewhere) return
    this.#isElsewhere = true
    this.#parts.duty.onElsewhere?.()
  }

  /** Another relay has it, since this one was silent. */
  lose(): void {
    const run = this.#run
    if (!run) return
    const error = lostError(this.what)
    this.#parts.log.warn(error.message)
    run.lost.abort(error)
    void this.end()
  }

  /** Does not reject. */
  async end(): Promise<void> {
    const run = this.#run
    this.#run = undefined
    if (run) {
      const ended = this.#dispose(run)
      this.#ended = ended
      await ended
      if (this.#ended === ended) this.#ended = undefined
    }
    await this.#ended
  }

  async #start(run: Run): Promise<Doing | undefined> {
    const { duty, log } = this.#parts
    try {
      const doing = await duty.start(this.#ownerOf(run))
      run.isIdle = () => doing.isIdle?.() === true
      return doing
    } catch (error) {
      // Off again, so that it is started again after the next beat.
      if (this.#run !== run) return undefined
      this.#run = undefined
      log.error(`Could not start yet: ${duty.what}: ${toRelayError(error).message}`)
      return undefined
    }
  }

  async #dispose({ doing, ending }: Run): Promise<void> {
    try {
      const disposed = (await doing)?.[Symbol.asyncDispose]()
      // After that has begun: what waits must find itself stopped.
      ending.abort()
      await disposed
    } catch (error) {
      this.#parts.log.error(`Did not end properly: ${this.what}`, error)
    }
  }

  #ownerOf(run: Run): Owner {
    const { epoch, lost, ending } = run
    const { fence, renewed } = this.#parts
    const isCurrent = (): boolean => this.#parts.isCurrent(run.since)
    const check = (): void => {
      lost.signal.throwIfAborted()
      ending.signal.throwIfAborted()
    }
    return {
      lost: lost.signal,
      isCurrent: () => !ending.signal.aborted && isCurrent(),
      async assert() {
        check()
        while (!isCurrent()) {
          await renewed(ending.signal)
          check()
        }
      },
      fence: {
        statement: () => fence(epoch),
        refuse: async () => {
          if (this.#run?.epoch === epoch) this.lose()
          throw lostError(this.what)
        },
      },
    }
  }
}

function lostError(what: string): RelayError {
  return new RelayError('unavailable', `Another relay has taken over, since this one was silent: ${what}`)
}
