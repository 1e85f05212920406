interface Node {
  readonly next: Map<number, Node>
  /** Longest proper suffix that is a beginning of another value. */
  fallback: Node | undefined
  /** Length of the longest value that ends here; 0 for none. */
  length: number
}

const node = (): Node => ({ next: new Map(), fallback: undefined, length: 0 })

/**
 * Finds many values in one pass over a text. The time depends only on the text's length, whatever the values have in
 * common, while an alternation compares each value at each position.
 * @see Aho and Corasick, Efficient string matching: an aid to bibliographic search (1975)
 */
export class Search {
  readonly #root = node()

  constructor(values: Iterable<string>) {
    for (const value of values) {
      let at = this.#root
      for (let i = 0; i < value.length; i++) {
        const code = value.charCodeAt(i)
        const next = at.next.get(code) ?? node()
        at.next.set(code, next)
        at = next
      }
      at.length = value.length
    }
    // Breadth first: a fallback is shorter, and so already known.
    const all = [this.#root]
    for (const parent of all)
      for (const [code, child] of parent.next) {
        child.fallback = parent === this.#root ? this.#root : this.#step(parent.fallback, code)
        child.length = Math.max(child.length, child.fallback.length)
        all.push(child)
      }
  }

  /** Finds each value by its end. Of values that end together, the longest. */
  *in(text: string): Generator<{ readonly start: number; readonly end: number }> {
    if (this.#root.next.size === 0) return
    let at = this.#root
    for (let i = 0; i < text.length; i++) {
      at = this.#step(at, text.charCodeAt(i))
      if (at.length > 0) yield { start: i + 1 - at.length, end: i + 1 }
    }
  }

  #step(from: Node | undefined, code: number): Node {
    for (let at = from; at; at = at.fallback) {
      const next = at.next.get(code)
      if (next) return next
    }
    return this.#root
  }
}
