/** Map of at most `limit` entries, which removes its oldest when full: the sandbox lives in memory. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #limit: number

  constructor(limit: number) {
    super()
    this.#limit = limit
  }

  override set(key: K, value: V): this {
    super.set(key, value)
    if (this.size > this.#limit) this.#removeOldest()
    return this
  }

  #removeOldest(): void {
    const oldest = this.keys().next()
    if (!oldest.done) this.delete(oldest.value)
  }
}
