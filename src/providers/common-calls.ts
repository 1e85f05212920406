// Calls that every code host takes alike; loaded when the first is made.
import { z } from 'zod'
import { send, type UserApi } from './http.js'
import type { CommentInput, CommentResult, RepoTarget } from './provider.js'

const login = z.object({ login: z.string() })
const comment = z.object({ id: z.int(), html_url: z.url({ protocol: /^https?$/ }) })

export const repoPath = ({ owner, repo }: RepoTarget): string[] => ['repos', owner, repo]

/** GET /user. */
export async function getUser(api: UserApi) {
  return (await send(api, { method: 'GET', path: ['user'], answer: login })).value
}

/** POST /repos/{owner}/{repo}/issues/{n}/comments; a pull request is an issue. */
export async function postComment(api: UserApi, input: CommentInput): Promise<CommentResult> {
  const path = [...repoPath(input), 'issues', input.issueNumber, 'comments']
  const { value } = await send(api, { method: 'POST', path, body: { body: input.body }, answer: comment })
  return { id: value.id, url: value.html_url }
}
