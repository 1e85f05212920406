// Calls that every code host takes alike; loaded when the first is made.
import { z } from 'zod'
import { send, type UserApi } from './http.js'
import { namesNext, PAGE_SIZE, pages } from './pages.js'
import type { Comment, CommentInput, CommentResult, EditInput, IssueTarget, RepoTarget } from './provider.js'

export const login = z.object({ login: z.string() })
const comment = z.object({ id: z.int(), html_url: z.url({ protocol: /^https?$/ }) })

const comments = z.array(
  comment.extend({ body: z.string().nullish(), user: z.object({ login: z.string() }).nullish() }),
)

/** The id of a commit: SHA-1, or SHA-256 in some of Gitea's repositories. */
const commit = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/)

/** The head of a pull request. */
export const pullHead = z.object({ head: z.object({ sha: commit }) })

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

/**
 * GET /repos/{owner}/{repo}/issues/{n}/comments, oldest first. GitHub lists them in pages, and Gitea all at once, without
 * a link to a next page (Gitea's routers/api/v1/repo/issue_comment.go, ListIssueComments).
 */
export async function* listComments(api: UserApi, input: IssueTarget): AsyncGenerator<Comment> {
  const path = [...repoPath(input), 'issues', input.issueNumber, 'comments']
  const call = { method: 'GET', path, query: { per_page: PAGE_SIZE }, answer: comments } as const
  for await (const page of pages(api, call, namesNext))
    for (const { id, html_url: url, body, user } of page)
      yield { id, url, body: body ?? '', author: user?.login }
}

/** PATCH /repos/{owner}/{repo}/issues/comments/{id} (docs.github.com/rest/issues/comments; Gitea: issueEditComment). */
export async function patchComment(api: UserApi, input: EditInput): Promise<CommentResult> {
  const path = [...repoPath(input), 'issues', 'comments', input.commentId]
  const { value } = await send(api, { method: 'PATCH', path, body: { body: input.body }, answer: comment })
  return { id: value.id, url: value.html_url }
}
