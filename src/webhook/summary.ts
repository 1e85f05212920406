import type { Delivery } from '../journal/delivery.js'
import { outlineOf } from './json.js'
import type { Wanted } from './json-scanner.js'

/** Longer than any action, and than any `owner/name` GitHub or Gitea allow. Longer text is no name of theirs. */
const MAX_LENGTH = 256

const NUMBER: Wanted = { name: 'number' }
const WANTED: readonly Wanted[] = [
  { name: 'action' },
  { name: 'repository', members: [{ name: 'full_name' }] },
  NUMBER,
  { name: 'issue', members: [NUMBER] },
  { name: 'pull_request', members: [NUMBER] },
]

/**
 * What a line about a delivery shows, where the payload has it: its action, repository, and issue or pull-request
 * number. The payload may be any JSON value, so nothing about it is taken for granted.
 * @throws RelayError `invalid_event` when the payload is not JSON, as `parseJson` reads it.
 */
export function summarize(payload: Uint8Array): Pick<Delivery, 'action' | 'repo' | 'number'> {
  const { action, repository, number, issue, pull_request } = outlineOf(payload, WANTED)
  return {
    action: name(action),
    repo: name(own(repository, 'full_name')),
    number: count(number) ?? count(own(issue, 'number')) ?? count(own(pull_request, 'number')),
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
