import { inspect } from 'node:util'
import { checkArgument, text } from './checks.js'

const MASK = '[secret]'

/**
 * A string that must not be printed. Converted to text or JSON, or inspected, it is a mask, so a careless log line
 * reveals nothing. Only {@link reveal} returns the value.
 */
export class Secret {
  readonly #value: string

  /** @throws RelayError `usage` for anything but a text, such as a variable that is not set */
  constructor(value: string) {
    checkArgument('new Secret: the value', value, text)
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
