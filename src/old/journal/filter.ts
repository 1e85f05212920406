import { RelayError } from '../../base/errors.js'
import { type FilterText, parseFilter } from '../../journal/filter.js'
import type { Filter } from '../../journal/filter.js'

/** The flags that select entries. */
export interface FilterFlags extends FilterText {
  /** Short for `--status failed`. */
  readonly failed?: boolean
  readonly last?: string
}

/** How `--since` is written, for help. */
export const SINCE = '1h (ago), 2026-01-31T12:00, or now'

/** @throws RelayError `usage` that names the flag. */
export function readFilter({ failed, last, ...flags }: FilterFlags, now: number): Filter {
  if (failed && flags.status !== undefined && flags.status !== 'failed')
    throw new RelayError('usage', '--failed: contradicts --status')
  if (last !== undefined && !/^\d{1,9}$/.test(last))
    throw new RelayError('usage', '--last: must be a whole number')
  return {
    ...parseFilter({ ...flags, ...(failed && { status: 'failed' }) }, now, (part) => `--${part}`),
    ...(last !== undefined && { last: Number(last) }),
  }
}
