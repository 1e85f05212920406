import type { Delivery } from '../journal/delivery.js'

/** Longer than any action, and than any `owner/name` GitHub or Gitea allow. Longer text is no name of theirs. */
const MAX_LENGTH = 256

/**
 * What a line about a delivery shows, where the payload has it: its action, repository, and issue or pull-request
 * number. The payload may be any JSON value, so nothing about it is taken for granted.
 */
export function summarize(payload: unknown): Pick<Delivery, 'action' | 'repo' | 'number'> {
  return {
    action: name(own(payload, 'action')),
    repo: name(own(own(payload, 'repository'), 'full_name')),
    number:
      count(own(payload, 'number')) ??
      count(own(own(payload, 'issue'), 'number')) ??
      count(own(own(payload, 'pull_request'), 'number')),
  }
}

function own(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.getOwnPropertyDescriptor(value, key)?.value
}

function name(value: unknown): string | null {
  const fits = typeof value === 'string' && value.length > 0 && value.length <= MAX_LENGTH
  return fits && !/[\p{Cc}\p{Cs}]/u.test(value) ? value : null
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null
}
