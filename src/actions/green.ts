import { RelayError } from '../base/errors.js'
import { printable } from '../base/printable.js'
import type { Check, HeadChecks } from '../providers/provider.js'

/** Names in a message: enough to see what is wrong. */
const MAX_NAMES = 20
/** Characters of one name. */
const MAX_NAME_LENGTH = 80

/**
 * Checks that all checks and statuses of a head have succeeded. A head without any is not green: its checks may not have begun.
 * @throws RelayError `checks_failed` that names the others.
 */
export function requireGreen(pull: string, { sha, checks }: HeadChecks): void {
  if (checks.length === 0)
    throw notGreen(pull, sha, 'has no checks and no statuses. They may not have begun; try again later')
  const failed = checks.filter(({ state }) => state === 'failed')
  const pending = checks.filter(({ state }) => state === 'pending')
  const parts = [
    ...(failed.length > 0 ? [`has not succeeded in ${listed(failed)}`] : []),
    ...(pending.length > 0 ? [`has not finished ${listed(pending)}`] : []),
  ]
  if (parts.length > 0) throw notGreen(pull, sha, parts.join(', and '))
}

function notGreen(pull: string, sha: string, why: string): RelayError {
  return new RelayError('checks_failed', `${pull} is not merged: its head ${sha.slice(0, 7)} ${why}`)
}

function listed(checks: readonly Check[]): string {
  const names = checks.slice(0, MAX_NAMES).map(({ name, says }) => `${short(name)} (${short(says)})`)
  const more = checks.length - names.length
  return names.join(', ') + (more > 0 ? ` and ${more} more` : '')
}

function short(text: string): string {
  return printable(text.length > MAX_NAME_LENGTH ? `${text.slice(0, MAX_NAME_LENGTH - 1)}…` : text)
}
