// The calls to GitHub, loaded by the first.
import { z } from 'zod'
import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import type { OAuthClient } from '../base/settings.js'
import { Refusal } from './errors.js'
import { send, type Api, type Call } from './http.js'
import type { CommentInput, MergeInput, MergeResult, ReactInput } from './provider.js'

const login = z.object({ login: z.string() })
const comment = z.object({ id: z.int(), html_url: z.url({ protocol: /^https?$/ }) })
const merged = z.object({ sha: z.string(), merged: z.literal(true) })
const reaction = z.object({ id: z.int() })

/** GET /user. */
export async function getUser(api: Api, token: string, options?: Cancellable) {
  return (await send(api, { method: 'GET', path: ['user'], token, answer: login, ...options })).value
}

/** POST /repos/{owner}/{repo}/issues/{n}/comments; a pull request is an issue. */
export async function postComment(api: Api, token: string, input: CommentInput, options?: Cancellable) {
  const path = ['repos', input.owner, input.repo, 'issues', input.issueNumber, 'comments']
  const call: Call<z.infer<typeof comment>> = {
    method: 'POST',
    path,
    token,
    body: { body: input.body },
    answer: comment,
  }
  const { value } = await send(api, { ...call, ...options })
  return { id: value.id, url: value.html_url }
}

/** PUT /repos/{owner}/{repo}/pulls/{n}/merge. */
export async function putMerge(
  api: Api,
  token: string,
  input: MergeInput,
  options?: Cancellable,
): Promise<MergeResult> {
  const path = ['repos', input.owner, input.repo, 'pulls', input.pullNumber, 'merge']
  const body = {
    merge_method: input.method,
    commit_title: input.title,
    commit_message: input.message,
    sha: input.sha,
  }
  const { value } = await send(api, { method: 'PUT', path, token, body, answer: merged, ...options })
  return { merged: true, sha: value.sha }
}

/** POST …/reactions of the issue, comment or review comment: 201 made, 200 it was there. */
export async function postReaction(api: Api, token: string, input: ReactInput, options?: Cancellable) {
  const { content } = input
  const path = ['repos', input.owner, input.repo, ...reactedTo(input), 'reactions']
  const { status, value } = await send(api, {
    method: 'POST',
    path,
    token,
    body: { content },
    answer: reaction,
    ...options,
  })
  return { id: value.id, content, created: status === 201 }
}

function reactedTo({ issueNumber, commentId, reviewCommentId }: ReactInput): (string | number)[] {
  if (commentId !== undefined) return ['issues', 'comments', commentId]
  if (reviewCommentId !== undefined) return ['pulls', 'comments', reviewCommentId]
  return ['issues', issueNumber]
}

/** DELETE /applications/{client_id}/token; 404 and 422 say that there is no such token of this application. */
export async function deleteToken(
  api: Api,
  token: string,
  client: OAuthClient,
  options?: Cancellable,
): Promise<void> {
  const path = ['applications', client.id, 'token']
  const body = { access_token: token }
  try {
    await send(api, { method: 'DELETE', path, token, client, body, answer: z.unknown(), ...options })
  } catch (error) {
    if (error instanceof Refusal && [404, 422].includes(error.providerStatus)) return
    if (!(error instanceof RelayError) || error.kind !== 'invalid_token') throw error
    throw new RelayError('forbidden', `${api.label} refused: it does not know this client id and secret`)
  }
}
