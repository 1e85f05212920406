/** The numbers of the entries that wait for one target, in order, each with the instant since when: two numbers apiece. */
export class PendingQueue {
  #numbers: number[] = []
  #since: number[] = []
  /** Index of the first one; those before it were removed. */
  #head = 0

  get size(): number {
    return this.#numbers.length - this.#head
  }

  /** False when it is there already. The newest entry is added at the end, at the same cost however many wait. */
  add(n: number, since: number): boolean {
    const at = this.#find(n)
    if (this.#numbers[at] === n) return false
    this.#numbers.splice(at, 0, n)
    this.#since.splice(at, 0, since)
    return true
  }

  delete(n: number): boolean {
    const at = this.#find(n)
    if (this.#numbers[at] !== n) return false
    if (at === this.#head) this.#dropFirst()
    else {
      this.#numbers.splice(at, 1)
      this.#since.splice(at, 1)
    }
    return true
  }

  /** The first in order for which `fits` is true. */
  first(fits: (n: number) => boolean): number | undefined {
    for (let at = this.#head; at < this.#numbers.length; at++) {
      const n = this.#numbers[at]
      if (n !== undefined && fits(n)) return n
    }
    return undefined
  }

  /** Those that have waited since `instant` or before. */
  waitingSince(instant: number): number[] {
    return this.#numbers.filter((_, at) => at >= this.#head && (this.#since[at] ?? Infinity) <= instant)
  }

  #dropFirst(): void {
    this.#head++
    if (this.#head * 2 < this.#numbers.length) return
    this.#numbers = this.#numbers.slice(this.#head)
    this.#since = this.#since.slice(this.#head)
    this.#head = 0
  }

  /** Index of `n`, or where it would be inserted. */
  #find(n: number): number {
    let low = this.#head
    let high = this.#numbers.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#numbers[middle] ?? Infinity) < n) low = middle + 1
      else high = middle
    }
    return low
  }
}
