import { RelayError } from './errors.js'

/** Refuses calls to something that its program has stopped, and stops it once. */
export class StopGate {
  readonly #message: string
  readonly #stop: () => Promise<void>
  #stopping: Promise<void> | undefined

  /** @param message of the error: `The relay was stopped` */
  constructor(message: string, stop: () => Promise<void>) {
    this.#message = message
    this.#stop = stop
  }

  /** @throws RelayError `unavailable` once it is stopped */
  check(): void {
    if (this.#stopping) throw new RelayError('unavailable', this.#message)
  }

  /**
   * Runs what uses it. An operation in flight during the stop fails in many ways: its connection or the database is closed.
   * @throws RelayError `unavailable` once it is stopped, `cancelled` if it stops meanwhile; otherwise what `work` throws,
   * as always once `signal` has aborted
   */
  async run<Result>(work: () => Promise<Result>, signal?: () => AbortSignal | undefined): Promise<Result> {
    this.check()
    try {
      return await work()
    } catch (error) {
      const isOwn = error instanceof RelayError && error.kind === 'cancelled'
      if (!this.#stopping || isOwn || signal?.()?.aborted) throw error
      throw new RelayError('cancelled', this.#message, { cause: error })
    }
  }

  /** Stops it. Called again, it returns the same promise. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }
}
