/** The changes of entries, in their order. */
export interface Changes {
  add(n: number): void
  /** The number of the last change: 1, 2, 3 …; 0 before the first. */
  readonly latest: number
  /** The entries that changed after that change, in the order of their last change. Undefined when some of them are no longer known. */
  since(change: number): readonly number[] | undefined
}

/** Changes held at least: some seconds of the fastest intake, and minutes of what people look at. */
export const MAX_CHANGES = 10_000

export function createChanges(): Changes {
  const changed: number[] = []
  let forgotten = 0
  const latest = (): number => forgotten + changed.length
  return {
    add(n) {
      changed.push(n)
      // Not one by one: every delivery adds one.
      if (changed.length >= 2 * MAX_CHANGES) forgotten += changed.splice(0, MAX_CHANGES).length
    },
    get latest() {
      return latest()
    },
    since(change) {
      if (!(change >= forgotten && change <= latest())) return undefined
      return [...new Set(changed.slice(change - forgotten).toReversed())].toReversed()
    },
  }
}
