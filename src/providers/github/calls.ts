// The calls to GitHub; loaded when the first is made.
import { z } from 'zod'
import { RelayError } from '../../base/errors.js'
import type { OAuthClient } from '../../base/settings.js'
import { login, repoPath } from '../common-calls.js'
import { Refusal } from '../errors.js'
import { send, type UserApi } from '../http.js'
import { explainRefusal } from '../merge-refusal.js'
import type { MergeInput, MergeResult, ReactInput, TokenFacts } from '../provider.js'

export { getUser, listComments, patchComment, postComment } from '../common-calls.js'
export { getHeadChecks } from './checks.js'

const merged = z.object({ sha: z.string(), merged: z.literal(true) })
const reaction = z.object({ id: z.int() })

/**
 * GET /user, whose headers also describe the token. Those of a classic token have `X-OAuth-Scopes`, empty for one without
 * scopes; those of a fine-grained token have none (docs.github.com, "Scopes for OAuth apps").
 */
export async function getTokenFacts(api: UserApi): Promise<TokenFacts> {
  const { value, header } = await send(api, { method: 'GET', path: ['user'], answer: login })
  const scopes = header('x-oauth-scopes')?.split(/[\s,]+/)
  return {
    login: value.login,
    scopes: scopes ?? (api.token.startsWith('ghp_') ? [] : undefined),
    expiresAt: parseExpiration(header('github-authentication-token-expiration')),
  }
}

/** Parses `2026-12-31 23:59:59 UTC`, or with an offset such as `+0200` in place of `UTC`. */
function parseExpiration(text = ''): number | undefined {
  const [, day, time, zone] = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) (UTC|[+-]\d{4})$/.exec(text) ?? []
  if (zone === undefined) return undefined
  const offset = zone === 'UTC' ? 'Z' : `${zone.slice(0, 3)}:${zone.slice(3)}`
  const at = Date.parse(`${day}T${time}${offset}`)
  return Number.isNaN(at) ? undefined : at
}

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
