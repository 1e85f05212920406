/**
 * Collects resources to close, like the standard's AsyncDisposableStack, which Node 20 lacks. Closes them in reverse order,
 * all of them even if one fails, and then throws the first failure.
 */
export class Disposal implements AsyncDisposable {
  #closers: (() => Promise<void>)[] = []

  /** Adds `resource` and returns it. */
  use<Resource extends AsyncDisposable>(resource: Resource): Resource {
    this.defer(() => Promise.resolve(resource[Symbol.asyncDispose]()))
    return resource
  }

  defer(close: () => Promise<void>): void {
    this.#closers.push(close)
  }

  /** Moves everything collected to a new owner. This one then closes nothing. */
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
