import { endToEndHeaders } from '../http/headers.js'

/** The event, the id of the delivery and its signatures, of any provider, and what relay itself adds. */
const MADE = /^x-(?:[a-z]+-(?:event|delivery|signature(?:-256)?)|gitlab-(?:token|event-uuid)|relay-.*)$/i

/**
 * Whether relay makes a header for each delivery itself, so that an edited copy cannot set it: the event (from the edit's own field), the
 * delivery id and signatures; those in `made`, the lower-case names that the delivery's source has for them; `X-Relay-…`, which only relay
 * may set; those of one connection, such as Host and Content-Length; and credentials, which are never stored. The page imports it, so it
 * imports nothing that needs Node.
 */
export function isMadeHeader(name: string, made: readonly string[]): boolean {
  return MADE.test(name) || made.includes(name.toLowerCase()) || endToEndHeaders([[name, '']]).length === 0
}
