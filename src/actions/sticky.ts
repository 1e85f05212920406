import { createHash } from 'node:crypto'
import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { Comment, CommentInput, CommentResult, Provider } from '../providers/provider.js'
import type { Store } from '../store/kv.js'
import { exclusively } from '../store/exclusively.js'

/** Milliseconds for reading the comments of an issue, between two pages: 50 pages take about 20 s. */
const LIST_LIMIT = 60_000

/** Milliseconds: the listing, its last page (25 s), the write (60 s), and a lock whose owner died. */
const LOCK_WAIT_MS = LIST_LIMIT + 100_000

export interface StickyParts {
  readonly provider: Pick<Provider, 'origin' | 'whoAmI' | 'comments' | 'editComment'>
  readonly token: string
  /** Has the lock that keeps two processes of this profile from both adding the comment. */
  readonly store: Store
  /** Adds a comment. */
  readonly create: (input: CommentInput) => Promise<CommentResult>
}

export interface StickyResult extends CommentResult {
  /** False if an earlier comment was edited. */
  readonly created: boolean
}

/**
 * Parses the key of a sticky comment: 1–100 of `[A-Za-z0-9._:/-]`, which cannot end the HTML comment that it is written in.
 * @throws RelayError `usage`.
 */
export function parseStickyKey(text: string): string {
  if (/^[A-Za-z0-9._:/-]{1,100}$/.test(text)) return text
  throw new RelayError('usage', '--sticky: must be 1 to 100 of A-Z a-z 0-9 . _ : / -')
}

/**
 * Edits the comment that this account made before with the same key on the same issue, the oldest if there are several, or
 * adds one. An HTML comment in its first line, which pages do not show, holds the key. Writes once, whatever happens.
 * Processes of one profile take turns; two profiles at the same moment can still add one each.
 * @throws RelayError as {@link Provider}'s calls; `timed_out` when another process holds the turn.
 */
export async function writeSticky(
  { provider, token, store, create }: StickyParts,
  { body: text, ...issue }: CommentInput,
  key: string,
  options: Cancellable,
): Promise<StickyResult> {
  const marker = `<!-- relay-sticky: ${key} -->`
  const body = `${marker}\n${text}`
  const { login } = await provider.whoAmI(token, options)
  const { owner, repo, issueNumber } = issue
  const subject = [provider.origin, login, owner.toLowerCase(), repo.toLowerCase(), issueNumber, key]
  const lock = `sticky-lock:${createHash('sha256').update(JSON.stringify(subject)).digest('hex')}`
  const work = async (): Promise<StickyResult> => {
    const isEarlier = ({ author, body }: Comment): boolean => author === login && body.startsWith(marker)
    const earlier = await findFirst(provider.comments(token, issue, options), isEarlier)
    if (!earlier) return { ...(await create({ ...issue, body })), created: true }
    const edit = { owner, repo, commentId: earlier.id, body }
    return { ...(await provider.editComment(token, edit, options)), created: false }
  }
  return exclusively(
    store,
    lock,
    { wait: LOCK_WAIT_MS, what: 'writing this sticky comment', ...options },
    work,
  )
}

async function findFirst(
  comments: AsyncIterable<Comment>,
  isWanted: (comment: Comment) => boolean,
): Promise<Comment | undefined> {
  const end = performance.now() + LIST_LIMIT
  for await (const comment of comments) {
    if (isWanted(comment)) return comment
    if (performance.now() > end)
      throw new RelayError('provider_timeout', 'The code host did not list the comments within 60 s')
  }
  return undefined
}
