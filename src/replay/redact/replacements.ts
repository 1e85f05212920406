import { Search } from './search.js'

/** Characters of a value that is looked for everywhere: shorter ones are found by chance. */
const MIN_REPEATED = 6
/** Longer than any token that stands in two places; what is longer is replaced where it is found. */
const MAX_REPEATED_LENGTH = 256
/** More than any delivery has. It bounds the memory of the search. */
const MAX_REPEATED = 200
/** A word of a longer value that can be a token. */
const TOKEN = /[^\s"'<>,;]{8,256}/g
const isMixed = (text: string): boolean => /\p{L}/u.test(text) && /\d/.test(text)

/** Every value that is left out, with what stands for it: the same everywhere, so that what was equal stays equal. */
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

  /** Has a secret, and the tokens in it, looked for everywhere. */
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

  /** From now on, {@link everywhere} finds what was learned so far. */
  repeat(): void {
    this.#search = new Search(this.#repeated)
  }

  /** Where a text has what was learned. */
  everywhere(text: string): Iterable<{ readonly start: number; readonly end: number }> {
    return this.#search.in(text)
  }

  #known(value: string, make: () => string): string {
    const made = this.#of.get(value) ?? make()
    this.#of.set(value, made)
    return made
  }
}
