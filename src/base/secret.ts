import { inspect } from 'node:util'

const MASK = '[secret]'

/**
 * A string that must not be printed. Converted to text or JSON, or inspected, it is a mask, so a careless log line
 * reveals nothing. Only {@link reveal} returns the value.
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
