import { type Header, passedOn } from '../http/headers.js'

/** The header that relay adds. */
const ATTEMPT = 'X-Relay-Attempt'

/** The headers for a target: the provider's as recorded, in their order and spelling, and the number of the attempt. */
export function forwardedHeaders(recorded: readonly Header[], attempt: number): Header[] {
  const kept = passedOn(recorded).filter(
    ([name, value]) => name.toLowerCase() !== ATTEMPT.toLowerCase() && isWritable(name, value),
  )
  return [...kept, [ATTEMPT, String(attempt)]]
}

/** False for a header that cannot be sent (RFC 9110 section 5): the whole delivery would never be sent. */
function isWritable(name: string, value: string): boolean {
  return /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}
