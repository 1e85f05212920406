import { Search } from './search.js'

/** Shortest value that is replaced everywhere. Shorter ones occur by chance. */
const MIN_REPEATED = 6
/**
 * Longest value that is replaced everywhere: longer than any token that occurs twice. Longer ones are replaced where
 * they are found.
 */
const MAX_REPEATED_LENGTH = 256
/** Most values that are replaced everywhere: more than any delivery has. It bounds the memory of the search. */
const MAX_REPEATED = 200
/** A word of a longer value that can be a token. */
const TOKEN = /[^\s"'<>,;]{8,256}/g
const isMixed = (text: string): boolean => /\p{L}/u.test(text) && /\d/.test(text)

/** Maps each redacted value to its replacement. Equal values get equal replacements. */
export class Replacements {
  readonly #of = new Map<string, string>()
  readonly #repeated = new Set<string>()
  #emails = 0
  #secrets = 0
  #search = new Search([])

  email(value: string): string {
    return this.#known(value, () => `user${++this.#emails}@example.com`)
  }

  secret(value: string): string {
    return value === '' ? value : this.#known(value, () => `redacted-${++this.#secrets}`)
  }

  /** Adds a secret, and the tokens in it, to the values that are replaced everywhere. */
  learn(value: string): void {
    const tokens = value.length > MAX_REPEATED_LENGTH || /\s/.test(value) ? value.matchAll(TOKEN) : []
    for (const text of [value, ...[...tokens].map(String).filter(isMixed)])
      if (
        text.length >= MIN_REPEATED &&
        text.length <= MAX_REPEATED_LENGTH &&
        this.#repeated.size < MAX_REPEATED
      )
        this.#repeated.add(text)
  }

  /** Lets {@link everywhere} find the values learned so far. */
  repeat(): void {
    this.#search = new Search(this.#repeated)
  }

  /** Finds the learned values in a text. */
  everywhere(text: string): Iterable<{ readonly start: number; readonly end: number }> {
    return this.#search.in(text)
  }

  #known(value: string, make: () => string): string {
    const made = this.#of.get(value) ?? make()
    this.#of.set(value, made)
    return made
  }
}
