/** Characters that could rewrite a terminal's display: C0 and C1 controls, DEL, line ends, text direction. All below U+10000. */
const REWRITING = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/** Escapes one line of text for a terminal: every character that could rewrite the display becomes `\u{…}`. */
export function printable(text: string): string {
  return text.replaceAll(REWRITING, shown)
}

/** Escapes several lines of text for a terminal. Like {@link printable}, but keeps line feeds and tabs. */
export function printableText(text: string): string {
  return text.replaceAll(REWRITING, (char) => (char === '\n' || char === '\t' ? char : shown(char)))
}

/**
 * Escapes JSON text for a terminal: the value stays the same, and such characters become `\uXXXX` (RFC 8259 section 7).
 * Keeps raw line feeds, which occur only between values.
 */
export function printableJson(json: string): string {
  return json.replaceAll(REWRITING, (char) => (char === '\n' ? char : `\\u${hex(char).padStart(4, '0')}`))
}

function shown(char: string): string {
  return `\\u{${hex(char)}}`
}

function hex(char: string): string {
  return char.charCodeAt(0).toString(16)
}

/**
 * Finds the word that was probably meant. Case, hyphens, underscores and a leading `RELAY_` or `--` do not count.
 * Returns the closest word, or undefined if more than a third of it is wrong, or more than `most` letters.
 */
export function suggest(word: string, words: readonly string[], most = Infinity): string | undefined {
  const meant = normalizeWord(word)
  const [best] = words
    .map((candidate) => ({ candidate, errors: distance(meant, normalizeWord(candidate)) }))
    .filter(
      ({ candidate, errors }) => errors <= Math.min(most, Math.floor(normalizeWord(candidate).length / 3)),
    )
    .toSorted((one, other) => one.errors - other.errors)
  return best?.candidate
}

/** Formats a suggestion as ` (did you mean …?)`, or an empty text. */
export function didYouMean(word: string, words: readonly string[]): string {
  const found = suggest(word, words)
  return found === undefined ? '' : ` (did you mean ${found}?)`
}

export function normalizeWord(word: string): string {
  return word
    .toLowerCase()
    .replace(/^relay_/, '')
    .replaceAll(/[-_]/g, '')
}

/** Edit distance: characters to insert, remove, replace, or swap with their neighbour ("optimal string alignment"). */
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

/**
 * Quotes text as one word of a POSIX shell or zsh. In single quotes, only the quote itself is special (POSIX, Shell
 * Command Language 2.2.2).
 */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
