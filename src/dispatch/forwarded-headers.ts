import { type Header, isSendable, passedOn } from '../http/headers.js'

/** The header that relay adds. */
const ATTEMPT = 'X-Relay-Attempt'

/** The headers for a target: the provider's as recorded, in their order and spelling, and the number of the attempt. */
export function forwardedHeaders(recorded: readonly Header[], attempt: number): Header[] {
  const headers = passedOn(recorded).filter(
    // With one that is not sendable, the delivery would never be sent.
    (header) => header[0].toLowerCase() !== ATTEMPT.toLowerCase() && isSendable(header),
  )
  return [...headers, [ATTEMPT, String(attempt)]]
}
