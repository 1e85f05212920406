import { RelayError } from '../base/errors.js'
import { parseInstant, parseSince } from './instant.js'
import { parseMatch } from './match.js'
import { DELIVERY_STATUSES, type Filter } from './select.js'

/** A filter as people write it, on the command line and in an address. */
export interface FilterText {
  readonly event?: readonly string[] | undefined
  readonly repo?: string | undefined
  readonly since?: string | undefined
  readonly until?: string | undefined
  readonly status?: string | undefined
  readonly text?: string | undefined
}

/** Longer than anybody types, and far below the limit of 50,000 of SQLite's patterns. */
const MAX_TEXT = 200

/**
 * Reads a filter. `nameOf` says how a part is called in messages: `--since` on the command line.
 * @throws RelayError `usage` that begins with the name of the part.
 */
export function parseFilter(
  { event, repo, since, until, status, text }: FilterText,
  now: number,
  nameOf: (part: keyof FilterText) => string,
): Filter {
  const given = DELIVERY_STATUSES.find((each) => each === status)
  if (repo !== undefined && !/^[^\s/]+\/[^\s/]+$/.test(repo))
    throw new RelayError('usage', `${nameOf('repo')}: must be owner/name`)
  if (status !== undefined && given === undefined)
    throw new RelayError('usage', `${nameOf('status')}: must be one of ${DELIVERY_STATUSES.join(', ')}`)
  if (text !== undefined && (text === '' || text.length > MAX_TEXT))
    throw new RelayError('usage', `${nameOf('text')}: must be 1 to ${MAX_TEXT} characters`)
  return {
    ...(event && { events: event.map(parseMatch) }),
    ...(repo !== undefined && { repo }),
    ...(since !== undefined && { since: parseSince(nameOf('since'), since, now) }),
    ...(until !== undefined && { until: parseInstant(nameOf('until'), until, now) }),
    ...(given && { status: given }),
    ...(text !== undefined && { text }),
  }
}
