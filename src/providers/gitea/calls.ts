// The calls to Gitea; loaded when the first is made.
import { z } from 'zod'
import { RelayError } from '../../base/errors.js'
import { getUser, postComment as post, pullHead, repoPath } from '../common-calls.js'
import { Refusal } from '../errors.js'
import { send, type UserApi } from '../http.js'
import { explainRefusal } from '../merge-refusal.js'
import type {
  CommentInput,
  CommentResult,
  MergeInput,
  MergeResult,
  ReactInput,
  TokenFacts,
} from '../provider.js'

export { getUser, listComments, patchComment } from '../common-calls.js'
export { getHeadChecks } from './checks.js'

const merged = z.object({ merged: z.literal(true), merge_commit_sha: z.string().min(1) })

type Path = readonly (string | number)[]

/** Gitea says nothing about a token; one without the scope `read:user` is refused, with that scope's name. */
export async function getTokenFacts(api: UserApi): Promise<TokenFacts> {
  return { ...(await getUser(api)), scopes: undefined, expiresAt: undefined }
}

/** Gitea 1.15 answers 500 to a comment on an issue that does not exist; reading the issue shows the reason. */
export async function postComment(api: UserApi, input: CommentInput): Promise<CommentResult> {
  try {
    return await post(api, input)
  } catch (error) {
    if (!(error instanceof Refusal && error.providerStatus === 500)) throw error
    const path = [...repoPath(input), 'issues', input.issueNumber]
    await send(api, { method: 'GET', path, answer: z.unknown() }).catch((reason: unknown) => {
      throw reason instanceof RelayError && reason.kind === 'not_found' ? reason : error
    })
    throw error
  }
}

/**
 * POST /repos/{owner}/{repo}/pulls/{n}/merge: an empty 200, or 201 when the merge waits for checks. The commit is
 * read afterwards, and so is the reason of a refusal. 1.15 does not know `head_commit_id`, so the head is also compared
 * beforehand, which leaves a moment in which it can still change.
 */
export async function postMerge(api: UserApi, input: MergeInput): Promise<MergeResult> {
  const path = [...repoPath(input), 'pulls', input.pullNumber]
  if (input.sha !== undefined) await checkHead(api, path, input.sha)
  const body = {
    Do: input.method ?? 'merge',
    MergeTitleField: input.title,
    MergeMessageField: input.message,
    head_commit_id: input.sha,
  }
  const call = { method: 'POST', path: [...path, 'merge'], body, answer: z.unknown() } as const
  const { status } = await send(api, call).catch(async (error: unknown) => {
    throw await explainRefusal(api, path, error, REFUSED_MERGE)
  })
  return status === 201 ? { merged: false, sha: null } : { merged: true, sha: await mergeCommit(api, path) }
}

/** Answered with 405, not 403. "not allowed to merge [reason: …]" means something else: approvals or checks. */
const REFUSED_MERGE = { forbidden: /^User not allowed to merge/i, draft: /^Work in progress/i }

async function checkHead(api: UserApi, path: Path, sha: string): Promise<void> {
  const { value } = await send(api, { method: 'GET', path, answer: pullHead })
  if (value.head.sha !== sha)
    throw new RelayError('conflict', 'Not merged: the head of the pull request is another commit')
}

async function mergeCommit(api: UserApi, path: Path): Promise<string> {
  try {
    return (await send(api, { method: 'GET', path, answer: merged })).value.merge_commit_sha
  } catch (cause) {
    const why = cause instanceof RelayError ? cause.message : 'unknown reason'
    throw new RelayError('provider_failed', `Gitea merged it, but did not return the commit: ${why}`, {
      cause,
    })
  }
}

/** POST …/reactions: 201 when added, 200 when it was there already; without an id. A review comment is a comment. */
export async function postReaction(api: UserApi, input: ReactInput) {
  const { content, commentId = input.reviewCommentId } = input
  const subject = commentId === undefined ? [input.issueNumber] : ['comments', commentId]
  const path = [...repoPath(input), 'issues', ...subject, 'reactions']
  const { status } = await send(api, { method: 'POST', path, body: { content }, answer: z.unknown() })
  return { id: null, content, created: status === 201 }
}
