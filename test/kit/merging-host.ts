import { type FullReply, receiver } from './receiver.js'

/** The commit that a merge makes, the head that is asked for, and one that was pushed later. */
export const MADE = 'c'.repeat(40)
export const HEAD = 'a'.repeat(40)
export const PUSHED = 'b'.repeat(40)

/** What happens to pull request #2 of `octo/demo`. */
export interface Happening {
  /** How many merges come second to a push to the base branch. */
  readonly moves?: number
  /** How many looks after a merge was refused find that the host is still checking, before each merge that it then accepts. */
  readonly checks?: number
  /** It conflicts with its base branch, which the host has found out after `checks`. */
  readonly conflicts?: boolean
  /** When its head becomes {@link PUSHED}. */
  readonly pushed?: 'after the look' | 'after the refusal'
  /** The token may not read it. */
  readonly isHidden?: boolean
  /** It was made, and its branches pushed, an hour ago. Otherwise that is not shown. */
  readonly isOld?: boolean
  /** After the first refusal somebody else has merged it. */
  readonly mergedByOther?: boolean
}

/**
 * A GitHub or a Gitea with one pull request, as far as its merge goes.
 *
 * GitHub: 405 `Base branch was modified. Review and try the merge again.` (cli/cli#12748, NixOS/nixpkgs-merge-bot#179), 405
 * `Pull Request is not mergeable`, `mergeable` null and `mergeable_state` `unknown` while it checks (docs.github.com/rest/pulls/pulls).
 *
 * Gitea, routers/api/v1/repo/pull.go MergePullRequest of 000762f8db280ae45ec1b8134ee9418aa7e1d421: 405 `Please try again later` for
 * ErrNotMergeableState, which services/pull/check.go returns for a conflict and while it checks; 409 `merge push out of date`, after
 * which it checks again (services/pull/merge.go, AddTestPullRequestTask); 405 with an empty message for what is merged, and 404 for
 * what is closed. `mergeable` is false while it checks.
 */
export async function mergingHost(kind: 'github' | 'gitea', happening: Happening) {
  const { moves = 0, checks = 0, conflicts = false, pushed, mergedByOther = false, isOld = false } = happening
  const isGitHub = kind === 'github'
  let [movesLeft, checksLeft] = [moves, checks]
  let [head, merged] = [HEAD, false]
  const writes: Readonly<Record<string, unknown>>[] = []
  const refuse = (status: number, message: string): FullReply => {
    if (pushed === 'after the refusal') head = PUSHED
    if (mergedByOther) merged = true
    return { status, body: { message, url: 'https://x/api/swagger' } }
  }
  const show = (): FullReply => {
    const isChecking = checksLeft > 0
    if (isChecking && writes.length > 0) checksLeft--
    const mergeable = isChecking ? (isGitHub ? null : false) : !conflicts
    const mergeable_state = isChecking || merged ? 'unknown' : conflicts ? 'dirty' : 'clean'
    const updated_at = new Date(Date.now() - 3_600_000).toISOString()
    const since = isOld && { created_at: updated_at, base: { repo: { updated_at } } }
    const branch = { sha: head, ...(isOld && { repo: { updated_at } }) }
    const common = { state: merged ? 'closed' : 'open', merged, head: branch, draft: false, ...since }
    const commit = { merge_commit_sha: merged ? MADE : null }
    if (pushed === 'after the look') head = PUSHED
    return { body: { ...common, ...commit, mergeable, ...(isGitHub && { mergeable_state }) } }
  }
  const merge = ({ sha, head_commit_id = sha }: Readonly<Record<string, unknown>>): FullReply => {
    if (head_commit_id !== undefined && head_commit_id !== head)
      return refuse(
        409,
        isGitHub ? 'Head branch was modified. Review and try the merge again.' : 'head out of date',
      )
    if (merged) return isGitHub ? refuse(405, 'Pull Request is not mergeable') : refuse(405, '')
    if (checksLeft > 0 || conflicts)
      return refuse(405, isGitHub ? 'Pull Request is not mergeable' : 'Please try again later')
    if (movesLeft > 0) {
      movesLeft--
      checksLeft = checks
      return isGitHub
        ? refuse(405, 'Base branch was modified. Review and try the merge again.')
        : refuse(409, 'merge push out of date')
    }
    merged = true
    return isGitHub
      ? { body: { sha: MADE, merged: true, message: 'Pull Request successfully merged' } }
      : { status: 200 }
  }
  const server = await receiver(({ method, path, body }) => {
    if (path.endsWith('/user')) return { body: { id: 1, login: 'mona' } }
    if (method === 'GET') return happening.isHidden ? refuse(403, 'Resource not accessible') : show()
    const asked: Record<string, unknown> = JSON.parse(body.toString())
    writes.push(asked)
    return merge(asked)
  })
  return {
    url: server.url,
    /** Bodies of the merges that it was asked for. */
    writes,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
