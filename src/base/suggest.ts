/**
 * The word that was probably meant. Case, hyphens, underscores and a leading `RELAY_` or `--` do not count; of the others
 * the closest one is taken, if it is close for its length. Undefined when none is.
 */
export function suggest(word: string, words: readonly string[]): string | undefined {
  const meant = plain(word)
  const [best] = words
    .map((candidate) => ({ candidate, errors: distance(meant, plain(candidate)) }))
    .filter(({ candidate, errors }) => errors <= Math.max(1, Math.floor(plain(candidate).length / 3)))
    .toSorted((one, other) => one.errors - other.errors)
  return best?.candidate
}

/** ` (did you mean …?)`, or nothing. */
export function didYouMean(word: string, words: readonly string[]): string {
  const found = suggest(word, words)
  return found === undefined ? '' : ` (did you mean ${found}?)`
}

export function plain(word: string): string {
  return word
    .toLowerCase()
    .replace(/^relay_/, '')
    .replaceAll(/[-_]/g, '')
}

/** Characters to insert, remove, replace, or swap with their neighbour: "optimal string alignment". */
function distance(one: string, other: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: other.length + 1 }, (_, j) => j)
  for (let i = 1; i <= one.length; i++) {
    const row = [i]
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1]
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      row[j] = Math.min(
        at(last, j) + 1,
        at(row, j - 1) + 1,
        at(last, j - 1) + (same ? 0 : 1),
        swapped ? at(beforeLast, j - 2) + 1 : Infinity,
      )
    }
    beforeLast = last
    last = row
  }
  return at(last, other.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity
}
