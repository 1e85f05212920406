// The calls to Gitea, loaded by the first.
import { z } from 'zod'
import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { Refusal } from './errors.js'
import { send, type Api } from './http.js'
import type {
  CommentInput,
  CommentResult,
  MergeInput,
  MergeResult,
  ReactInput,
  ReactResult,
  RepoTarget,
} from './provider.js'

const login = z.object({ login: z.string() })
const comment = z.object({ id: z.int(), html_url: z.url({ protocol: /^https?$/ }) })
const open = z.object({ head: z.object({ sha: z.string() }) })
const merged = z.object({ merged: z.literal(true), merge_commit_sha: z.string().min(1) })

const repoPath = ({ owner, repo }: RepoTarget): string[] => ['repos', owner, repo]

/** GET /user. */
export async function getUser(api: Api, token: string, options?: Cancellable) {
  return (await send(api, { method: 'GET', path: ['user'], token, answer: login, ...options })).value
}

export async function postComment(
  api: Api,
  token: string,
  input: CommentInput,
  options?: Cancellable,
): Promise<CommentResult> {
  const issue = [...repoPath(input), 'issues', input.issueNumber]
  const body = { body: input.body }
  try {
    const { value } = await send(api, {
      method: 'POST',
      path: [...issue, 'comments'],
      token,
      body,
      answer: comment,
      ...options,
    })
    return { id: value.id, url: value.html_url }
  } catch (error) {
    throw (await missing(api, token, issue, error, options)) ?? error
  }
}

/** Gitea 1.15 answers 500 to a comment on an issue that does not exist; only reading the issue tells. */
async function missing(
  api: Api,
  token: string,
  issue: (string | number)[],
  error: unknown,
  options?: Cancellable,
) {
  if (!(error instanceof Refusal && error.providerStatus === 500)) return undefined
  const read = send(api, { method: 'GET', path: issue, token, answer: z.unknown(), ...options })
  return read.then(
    () => undefined,
    (reason: unknown) => (reason instanceof RelayError && reason.kind === 'not_found' ? reason : undefined),
  )
}

/**
 * POST /repos/{owner}/{repo}/pulls/{n}/merge: an empty 200, or 201 when the merge waits for checks. The commit is
 * read afterwards. 1.15 does not know `head_commit_id`, so the head is compared beforehand as well, which leaves a
 * moment in which it can still move.
 */
export async function postMerge(
  api: Api,
  token: string,
  input: MergeInput,
  options?: Cancellable,
): Promise<MergeResult> {
  const path = [...repoPath(input), 'pulls', input.pullNumber]
  if (input.sha !== undefined) await checkHead(api, token, path, input.sha, options)
  const body = {
    Do: input.method ?? 'merge',
    MergeTitleField: input.title,
    MergeMessageField: input.message,
    head_commit_id: input.sha,
  }
  const sent = {
    method: 'POST',
    path: [...path, 'merge'],
    token,
    body,
    answer: z.unknown(),
    ...options,
  } as const
  const { status } = await send(api, sent)
  return status === 201
    ? { merged: false, sha: null }
    : { merged: true, sha: await mergeCommit(api, token, path, options) }
}

async function checkHead(
  api: Api,
  token: string,
  path: (string | number)[],
  sha: string,
  options?: Cancellable,
) {
  const { value } = await send(api, { method: 'GET', path, token, answer: open, ...options })
  if (value.head.sha !== sha)
    throw new RelayError('conflict', 'Not merged: the head of the pull request is another commit')
}

async function mergeCommit(
  api: Api,
  token: string,
  path: (string | number)[],
  options?: Cancellable,
): Promise<string> {
  try {
    const { value } = await send(api, { method: 'GET', path, token, answer: merged, ...options })
    return value.merge_commit_sha
  } catch (cause) {
    const why = cause instanceof RelayError ? cause.message : 'unknown reason'
    throw new RelayError('provider_failed', `Gitea merged it, but did not tell the commit: ${why}`, { cause })
  }
}

/** POST …/reactions: 201 made, 200 it was there; without an id. Review comments are comments like any other. */
export async function postReaction(
  api: Api,
  token: string,
  input: ReactInput,
  options?: Cancellable,
): Promise<ReactResult> {
  const { content, commentId = input.reviewCommentId } = input
  const of = commentId === undefined ? [input.issueNumber] : ['comments', commentId]
  const path = [...repoPath(input), 'issues', ...of, 'reactions']
  const { status } = await send(api, {
    method: 'POST',
    path,
    token,
    body: { content },
    answer: z.unknown(),
    ...options,
  })
  return { id: null, content, created: status === 201 }
}
