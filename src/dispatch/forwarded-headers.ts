import type { Header } from '../journal/delivery.js'
import { passedOn } from '../journal/headers.js'

/** This relay's own. */
const ATTEMPT = 'X-Relay-Attempt'

/** The headers a target receives: the provider's as recorded, in their order and spelling, and which attempt this is. */
export function forwardedHeaders(recorded: readonly Header[], attempt: number): Header[] {
  const kept = passedOn(recorded).filter(
    ([name, value]) => name.toLowerCase() !== ATTEMPT.toLowerCase() && isWritable(name, value),
  )
  return [...kept, [ATTEMPT, String(attempt)]]
}

/** A header that cannot be written (RFC 9110 section 5) would keep the whole delivery from ever being sent. */
export function isWritable(name: string, value: string): boolean {
  return /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}
