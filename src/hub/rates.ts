import { RelayError } from '../base/errors.js'

/** Requests of one minute are allowed at once; after that, as many as the minute gives. */
interface Bucket {
  left: number
  at: number
}

const MINUTE_MS = 60_000
/** Channels whose requests are counted. Beyond it the count of the oldest is forgotten: an operator has few. */
const MAX_COUNTED = 10_000

/** Limits the requests to each channel, so that one costs the others nothing. */
export class Rates {
  readonly #buckets = new Map<string, Bucket>()

  /** Counts a request. @throws RelayError `rate_limited` over `most` in a minute */
  count(channel: string, most: number, now = performance.now()): void {
    const { left, at } = this.#buckets.get(channel) ?? { left: most, at: now }
    const room = Math.min(most, left + ((now - at) / MINUTE_MS) * most)
    this.#buckets.delete(channel)
    this.#buckets.set(channel, { left: Math.max(0, room - 1), at: now })
    const [oldest] = this.#buckets.keys()
    if (this.#buckets.size > MAX_COUNTED && oldest !== undefined) this.#buckets.delete(oldest)
    if (room >= 1) return
    const retryAfter = Math.ceil(((1 - room) / most) * (MINUTE_MS / 1000))
    throw new RelayError('rate_limited', 'Too many requests to this channel', { retryAfter })
  }
}
