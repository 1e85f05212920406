/**
 * Collects what must be closed, in the manner of the standard's AsyncDisposableStack, which Node 20 lacks.
 * Closing goes in reverse order and reaches everything, also when one part fails; the first failure is then thrown.
 */
export class Disposal implements AsyncDisposable {
  #closers: (() => Promise<void>)[] = []

  /** Has `resource` closed with the rest, and returns it. */
  use<Resource extends AsyncDisposable>(resource: Resource): Resource {
    this.defer(() => Promise.resolve(resource[Symbol.asyncDispose]()))
    return resource
  }

  defer(close: () => Promise<void>): void {
    this.#closers.push(close)
  }

  /** Hands everything collected to a new owner; this one then closes nothing. */
  move(): Disposal {
    const owner = new Disposal()
    owner.#closers = this.#closers
    this.#closers = []
    return owner
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = []
    for (let close = this.#closers.pop(); close; close = this.#closers.pop()) {
      await close().catch((error: unknown) => failures.push(error))
    }
    if (failures.length > 0) throw failures[0]
  }
}
