// The calls to GitHub; loaded when the first is made.
import { z } from 'zod'
import { RelayError } from '../../base/errors.js'
import type { OAuthClient } from '../../base/settings.js'
import { repoPath } from '../common-calls.js'
import { Refusal } from '../errors.js'
import { send, type UserApi } from '../http.js'
import { explainRefusal } from '../merge-refusal.js'
import type { MergeInput, MergeResult, ReactInput } from '../provider.js'

export { getUser, postComment } from '../common-calls.js'

const merged = z.object({ sha: z.string(), merged: z.literal(true) })
const reaction = z.object({ id: z.int() })

/** PUT /repos/{owner}/{repo}/pulls/{n}/merge. If that is refused, it reads the pull request to find the reason. */
export async function putMerge(api: UserApi, input: MergeInput): Promise<MergeResult> {
  const pull = [...repoPath(input), 'pulls', input.pullNumber]
  const body = {
    merge_method: input.method,
    commit_title: input.title,
    commit_message: input.message,
    sha: input.sha,
  }
  const call = { method: 'PUT', path: [...pull, 'merge'], body, answer: merged } as const
  const { value } = await send(api, call).catch(async (error: unknown) => {
    throw await explainRefusal(api, pull, error)
  })
  return { merged: true, sha: value.sha }
}

/** POST …/reactions of the issue, comment or review comment: 201 when added, 200 when it was there already. */
export async function postReaction(api: UserApi, input: ReactInput) {
  const { content } = input
  const path = [...repoPath(input), ...subjectOf(input), 'reactions']
  const { status, value } = await send(api, { method: 'POST', path, body: { content }, answer: reaction })
  return { id: value.id, content, created: status === 201 }
}

function subjectOf({ issueNumber, commentId, reviewCommentId }: ReactInput): (string | number)[] {
  if (commentId !== undefined) return ['issues', 'comments', commentId]
  if (reviewCommentId !== undefined) return ['pulls', 'comments', reviewCommentId]
  return ['issues', issueNumber]
}

/** DELETE /applications/{client_id}/token; 404 and 422 mean that this application has no such token. */
export async function deleteToken(api: UserApi, client: OAuthClient): Promise<void> {
  const path = ['applications', client.id, 'token']
  const body = { access_token: api.token }
  try {
    await send(api, { method: 'DELETE', path, client, body, answer: z.unknown() })
  } catch (error) {
    if (error instanceof Refusal && [404, 422].includes(error.providerStatus)) return
    if (!(error instanceof RelayError) || error.kind !== 'invalid_token') throw error
    throw new RelayError('forbidden', `${api.label} refused: it does not know this client id and secret`)
  }
}
