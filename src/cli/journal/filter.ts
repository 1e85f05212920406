import { RelayError } from '../../base/errors.js'
import { parseMatch } from '../../journal/match.js'
import type { Filter } from '../../journal/select.js'
import { parseSince } from './instant.js'

/** The flags that say which entries are meant. */
export interface FilterFlags {
  readonly event?: readonly string[]
  readonly repo?: string
  readonly since?: string
  readonly failed?: boolean
  readonly last?: string
}

/** Entries that are shown unless a flag says otherwise. */
export const DEFAULT_LAST = 20

/** @throws RelayError `usage` that names the flag. */
export function readFilter(flags: FilterFlags, now: number): Filter & { readonly last: number } {
  const { event, repo, since, failed, last = String(DEFAULT_LAST) } = flags
  if (repo !== undefined && !/^[^\s/]+\/[^\s/]+$/.test(repo))
    throw new RelayError('usage', '--repo: must be owner/name')
  if (!/^\d{1,9}$/.test(last)) throw new RelayError('usage', '--last: must be a whole number')
  return {
    ...(event && { events: event.map(parseMatch) }),
    ...(repo !== undefined && { repo }),
    ...(since !== undefined && { since: parseSince(since, now) }),
    ...(failed && { failed }),
    last: Number(last),
  }
}

/** For a flag that may be given several times. */
export function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}
