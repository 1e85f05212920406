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

  /** Stops it. Called again, it returns the same promise. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }
}
