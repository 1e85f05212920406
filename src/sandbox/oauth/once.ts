import type { Clock } from '../../base/time.js'
import { BoundedMap } from '../bounded.js'
import { randomSecret } from './secrets.js'

/** Maximum number of values that wait to be taken; the oldest are removed first. */
const LIMIT = 1000

/** Values under random keys. Each is taken once, within a lifetime. */
export class Once<T> {
  readonly #clock: Clock
  readonly #lifetimeMs: number
  readonly #entries = new BoundedMap<string, { value: T; until: number }>(LIMIT)

  constructor(clock: Clock, lifetimeMs: number) {
    this.#clock = clock
    this.#lifetimeMs = lifetimeMs
  }

  /** Stores a value and returns its key, 160 random bits. */
  put(value: T): string {
    const key = randomSecret()
    this.#entries.set(key, { value, until: this.#clock() + this.#lifetimeMs })
    return key
  }

  take(key: string): T | undefined {
    const entry = this.#entries.get(key)
    this.#entries.delete(key)
    return entry && this.#clock() < entry.until ? entry.value : undefined
  }
}
