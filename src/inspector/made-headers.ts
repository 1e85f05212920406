import { endToEndHeaders } from '../http/headers.js'

/** Headers of any code host for the event, the delivery id and signatures, and the headers that relay adds. */
const MADE = /^x-(?:[a-z]+-(?:event|delivery|signature(?:-256)?)|relay-.*)$/i

/**
 * True for a header that relay makes for each delivery, so that an edited copy cannot set it: the event (from the
 * edit's own field), the delivery id and signatures; those in `made`, the lower-case names of the delivery's source;
 * `X-Relay-…`, which only relay may set; those of one connection, such as Host and Content-Length; and credentials,
 * which are never stored.
 *
 * The page imports this file, so it imports nothing that needs Node.
 */
export function isMadeHeader(name: string, made: readonly string[]): boolean {
  return MADE.test(name) || made.includes(name.toLowerCase()) || endToEndHeaders([[name, '']]).length === 0
}
