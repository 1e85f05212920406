import { inspect } from 'node:util'

const MASK = '[secret]'

/**
 * A string that must not be printed. Turning it into text, JSON or an inspection gives a mask, so that a
 * careless log line shows nothing; only {@link reveal} gives the value.
 */
export class Secret {
  readonly #value: string

  constructor(value: string) {
    this.#value = value
  }

  reveal(): string {
    return this.#value
  }

  toString(): string {
    return MASK
  }

  toJSON(): string {
    return MASK
  }

  [inspect.custom](): string {
    return MASK
  }
}
