/** The entries that changed last, in the order of their last change. */
export interface Changes {
  add(n: number): void
  /** The number of the last change: 1, 2, 3 …; 0 before the first. */
  readonly latest: number
  /** The entries that changed after that change. Undefined when some of them are no longer known. */
  since(change: number): readonly number[] | undefined
}

/** Entries held: some seconds of the fastest intake, and minutes of what people look at. */
export const MAX_CHANGES = 10_000

export function createChanges(): Changes {
  const changes = new Map<number, number>()
  let latest = 0
  let forgotten = 0
  return {
    add(n) {
      changes.delete(n)
      changes.set(n, ++latest)
      if (changes.size <= MAX_CHANGES) return
      const [oldest] = changes
      if (!oldest) return
      changes.delete(oldest[0])
      forgotten = oldest[1]
    },
    get latest() {
      return latest
    },
    since(change) {
      if (!(change >= forgotten && change <= latest)) return undefined
      const found: number[] = []
      // From the newest: usually few have changed.
      for (const [n, at] of [...changes].toReversed()) {
        if (at <= change) break
        found.push(n)
      }
      return found.toReversed()
    },
  }
}
