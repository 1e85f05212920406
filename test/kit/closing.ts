/** What has to be closed, last first. Node 20 has no AsyncDisposableStack. */
export class Closing implements AsyncDisposable {
  readonly #all: (() => PromiseLike<void> | void)[] = []

  use<Resource extends AsyncDisposable>(resource: Resource): Resource {
    this.#all.push(() => resource[Symbol.asyncDispose]())
    return resource
  }

  defer(close: () => PromiseLike<void> | void): void {
    this.#all.push(close)
  }

  /** Hands everything over to a new owner; disposing of this one then closes nothing. */
  move(): Closing {
    const owner = new Closing()
    owner.#all.push(...this.#all.splice(0))
    return owner
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = []
    for (let close = this.#all.pop(); close; close = this.#all.pop()) {
      try {
        await close()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}
