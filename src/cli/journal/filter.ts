import { RelayError } from '../../base/errors.js'
import { parseMatch } from '../../journal/match.js'
import type { Filter } from '../../journal/select.js'
import { parseSince } from './instant.js'

/** The flags that select entries. */
export interface FilterFlags {
  readonly event?: readonly string[]
  readonly repo?: string
  readonly since?: string
  readonly failed?: boolean
  readonly last?: string
}

/** How `--since` is written, for help. */
export const SINCE = '1h (ago), 2026-01-31T12:00, or now'

/** @throws RelayError `usage` that names the flag. */
export function readFilter(flags: FilterFlags, now: number): Filter {
  const { event, repo, since, failed, last } = flags
  if (repo !== undefined && !/^[^\s/]+\/[^\s/]+$/.test(repo))
    throw new RelayError('usage', '--repo: must be owner/name')
  if (last !== undefined && !/^\d{1,9}$/.test(last))
    throw new RelayError('usage', '--last: must be a whole number')
  return {
    ...(event && { events: event.map(parseMatch) }),
    ...(repo !== undefined && { repo }),
    ...(since !== undefined && { since: parseSince(since, now) }),
    ...(failed && { failed }),
    ...(last !== undefined && { last: Number(last) }),
  }
}
