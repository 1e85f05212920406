import { RelayError } from '../base/errors.js'
import type { Summary } from '../journal/types.js'
import { parseFilter } from '../journal/filter.js'
import type { Filter } from '../journal/filter.js'
import type { DeliveryPage, ListQuery } from './api.js'
import { linesOf, type LineParts } from './lines.js'
import type { InspectorParts } from './parts.js'

const DEFAULT_LIMIT = 50
/** More rows than any window shows, and a small answer. */
const MAX_LIMIT = 200
/** Milliseconds for a search without an index: a person waits that long, and can then continue it. */
const SEARCH_LIMIT_MS = 1500

/**
 * One page of the list. A search that finds too little in time stops, and says where to continue.
 * @throws RelayError `usage` that names the part of the query.
 */
export async function listDeliveries(
  parts: LineParts & Pick<InspectorParts, 'clock'>,
  query: ListQuery,
): Promise<DeliveryPage> {
  const limit = wholeNumber('limit', query.limit, MAX_LIMIT) ?? DEFAULT_LIMIT
  const before = wholeNumber('before', query.before, Number.MAX_SAFE_INTEGER)
  const filter = { ...readFilter(query, parts.clock()), ...(before !== undefined && { before }) }
  const end = performance.now() + SEARCH_LIMIT_MS
  const found: Summary[] = []
  let stopped: number | undefined
  for await (const step of parts.journal.walk({ ...filter, last: limit })) {
    found.push(...step.found)
    if (found.length >= limit || performance.now() < end || step.before <= 1) continue
    stopped = step.before
    break
  }
  return {
    deliveries: await linesOf(parts, found),
    next: found.length < limit ? null : (found.at(-1)?.n ?? null),
    ...(stopped !== undefined && {
      stopped: { read: (before ?? (await parts.journal.newest()) + 1) - stopped, before: stopped },
    }),
  }
}

/** The filter of a query, in which an empty value is none. */
function readFilter({ event, repo, since, until, status, text }: ListQuery, now: number): Filter {
  const given = {
    event: event ? event.split(',').map((each) => each.trim()) : undefined,
    repo: repo || undefined,
    since: since || undefined,
    until: until || undefined,
    status: status || undefined,
    text: text || undefined,
  }
  return parseFilter(given, now, (part) => part)
}

function wholeNumber(name: string, text: string | undefined, max: number): number | undefined {
  if (text === undefined || text === '') return undefined
  const value = /^\d{1,16}$/.test(text) ? Number(text) : 0
  if (value >= 1 && value <= max) return value
  throw new RelayError('usage', `${name}: must be a whole number from 1 to ${max}`)
}
