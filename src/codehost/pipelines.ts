// Actions that take several calls.
import { createHash } from 'node:crypto'
import type { Cancellable } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { printable } from '../base/text.js'
import { withLock } from '../store/lock.js'
import type { StoreReader, StoreUpdater } from '../store/kv.js'
import type { Account, CommitCheck, CommentOptions, CommentResult, HeadChecks, IssueRef } from './host.js'

export interface StickyParts {
  readonly host: { readonly origin: string }
  readonly account: Account
  /** Store for the lock that prevents two processes of this profile from both adding the comment. */
  readonly store: StoreReader & StoreUpdater
}

/**
 * Parses the key of a sticky comment: 1–100 of `[A-Za-z0-9._:/-]`, which cannot end the HTML comment that contains it.
 * @throws RelayError `usage`
 */
export function parseStickyKey(text: string): string {
  if (/^[A-Za-z0-9._:/-]{1,100}$/.test(text)) return text
  throw new RelayError('usage', '--sticky: must be 1 to 100 of A-Z a-z 0-9 . _ : / -')
}

/**
 * Edits the oldest comment that this account made with the same key on the same issue, or adds one; `created` is then
 * true. The key is in an HTML comment, which pages do not show. It is in the first line, since the last one may be
 * inside an open code block. Writes exactly once. Processes of one profile take turns; two profiles at the same moment
 * can still add one each.
 * @throws RelayError as the calls do; AbortError when `signal` aborts while another process has the turn
 */
export async function writeSticky(
  { host, account, store }: StickyParts,
  on: IssueRef,
  { key, body: text, quickActions }: { readonly key: string; readonly body: string } & CommentOptions,
  options: Cancellable = {},
): Promise<CommentResult & { readonly created: boolean }> {
  const marker = `<!-- relay-sticky: ${key} -->`
  const body = `${marker}\n${text}`
  const { login } = await account.facts()
  const subject = [host.origin, login, on.owner.toLowerCase(), on.repo.toLowerCase(), on.number, key]
  const lock = `sticky-lock:${createHash('sha256').update(JSON.stringify(subject)).digest('hex')}`
  return withLock(store, lock, { what: 'writing this sticky comment', ...options }, async () => {
    for await (const earlier of account.comments(on))
      if (earlier.author === login && earlier.body.startsWith(marker))
        return { ...(await account.editComment(on, earlier.id, body, { quickActions })), created: false }
    return { ...(await account.comment(on, body, { quickActions })), created: true }
  })
}

/** Most names in a message. */
const MAX_NAMES = 20
/** Longest name in a message, in characters. */
const MAX_NAME_LENGTH = 80

/**
 * Checks that all checks and statuses of a head have succeeded. A head without any does not pass, since its checks may
 * not have begun.
 * @throws RelayError `checks_failed` that names the others
 */
export function requireGreen(pull: string, { sha, checks }: HeadChecks): void {
  const notGreen = (why: string): RelayError =>
    new RelayError('checks_failed', `${pull} is not merged: its head ${sha.slice(0, 7)} ${why}`)
  if (checks.length === 0)
    throw notGreen('has no checks and no statuses. They may not have begun; try again later')
  const failed = checks.filter(({ state }) => state === 'failed')
  const pending = checks.filter(({ state }) => state === 'pending')
  const parts = [
    ...(failed.length > 0 ? [`has not succeeded in ${listed(failed)}`] : []),
    ...(pending.length > 0 ? [`has not finished ${listed(pending)}`] : []),
  ]
  if (parts.length > 0) throw notGreen(parts.join(', and '))
}

function listed(checks: readonly CommitCheck[]): string {
  const short = (text: string): string =>
    printable(text.length > MAX_NAME_LENGTH ? `${text.slice(0, MAX_NAME_LENGTH - 1)}…` : text)
  const names = checks.slice(0, MAX_NAMES).map(({ name, says }) => `${short(name)} (${short(says)})`)
  const more = checks.length - names.length
  return names.join(', ') + (more > 0 ? ` and ${more} more` : '')
}
