/** The word by which a write announces to other relays that an older entry has changed. */
export function changedWord(n: number): string {
  return String(n)
}

/** The same for an entry of which a forward waits again. */
export function waitingWord(n: number): string {
  return `${n}${AGAIN}`
}

const AGAIN = '+'

/** The older entries that another relay has announced. */
export interface Announced {
  readonly changed: readonly number[]
  /** Those of them of which a forward waits again. */
  readonly waiting: readonly number[]
}

/** Words of a newer version of relay that this one does not know are left out. */
export function readAnnounced(words: readonly string[]): Announced {
  const known = words.filter((word) => /^\d+\+?$/.test(word))
  const waiting = known.filter((word) => word.endsWith(AGAIN))
  return { changed: known.map(Number.parseFloat), waiting: waiting.map(Number.parseFloat) }
}
