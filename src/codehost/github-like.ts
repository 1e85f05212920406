// The part of GitHub's API that Gitea has copied.
import { z } from 'zod/mini'
import type { Reaction } from './actions.js'
import type * as host from './host.js'
import { PAGE_SIZE, apiPath, type RestClient } from './rest.js'

export const loginSchema = z.object({ login: z.string() })
export const webAddressSchema = z.url({ protocol: /^https?$/ })
const comment = z.pipe(
  z.object({
    id: z.int(),
    html_url: webAddressSchema,
    body: z.nullish(z.string()),
    user: z.nullish(z.object({ login: z.string() })),
  }),
  z.transform(({ id, html_url: url, body, user }): host.Comment => ({
    id,
    url,
    body: body ?? '',
    author: user?.login,
  })),
)
/** Id of a commit: SHA-1, or SHA-256 in some of Gitea's repositories. */
export const commitSchema = z.string().check(z.regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/))
const head = z.object({ head: z.object({ sha: commitSchema }) })

const reaction = z.object({ id: z.optional(z.int()) })

export const hookSchema = z.pipe(
  z.object({
    id: z.int(),
    active: z.boolean(),
    events: z.nullable(z.array(z.string())),
    config: z.object({
      url: z._default(z.string(), ''),
      content_type: z._default(z.string(), 'form'),
      secret: z.optional(z.string()),
    }),
    last_response: z.nullish(z.object({ code: z.nullable(z.int()), message: z.nullable(z.string()) })),
  }),
  z.transform(({ id, active, events, config, last_response: last }): host.RepoHook => ({
    id,
    active,
    events: events ?? [],
    url: config.url,
    contentType: config.content_type,
    // GitHub shows stars for a secret. Gitea, and servers that copy GitHub's API, may omit it.
    hasSecret: config.secret === undefined ? undefined : true,
    lastResponse: last && last.code !== null ? { code: last.code, message: last.message ?? '' } : undefined,
  })),
)

/** Path of an issue or a pull request, which share numbers and comments. */
export const issuePath = ({ owner, repo, number }: host.IssueRef): string =>
  apiPath`/repos/${owner}/${repo}/issues/${number}`
export const pullPath = ({ owner, repo, number }: host.IssueRef): string =>
  apiPath`/repos/${owner}/${repo}/pulls/${number}`
export const hooksPath = ({ owner, repo }: host.Repo): string => apiPath`/repos/${owner}/${repo}/hooks`

/** GitHub has `pull`, Gitea `pulls`. */
export function commentPaths({ owner, repo, number }: host.IssueRef, id: number): readonly string[] {
  return ['issues', 'pull', 'pulls'].map((page) => `/${owner}/${repo}/${page}/${number}#issuecomment-${id}`)
}

/**
 * States of statuses and conclusions of checks that count as success: a pull request can be merged with skipped and
 * neutral ones (docs.github.com, "About status checks"). Gitea has `skipped` since 1.24.
 */
const SUCCESSFUL: ReadonlySet<string> = new Set(['success', 'skipped', 'neutral'])

export function commitCheck(name: string, says: string, isPending = says === 'pending'): host.CommitCheck {
  const ended = SUCCESSFUL.has(says) ? 'succeeded' : 'failed'
  return { name, state: isPending ? 'pending' : ended, says }
}

/** Calls of an account that are the same at GitHub and Gitea. */
export abstract class GitHubLikeAccount {
  protected readonly rest: RestClient
  /** Path segment for the comments of reviews. */
  protected abstract readonly reviewed: 'pulls' | 'issues'

  constructor(rest: RestClient) {
    this.rest = rest
  }

  /** POST /repos/{owner}/{repo}/issues/{n}/comments. */
  async comment(on: host.IssueRef, body: string): Promise<host.CommentRef> {
    const call = { body: { body }, answer: comment }
    const { id, url } = (await this.rest.call('POST', `${issuePath(on)}/comments`, call)).value
    return { id, url }
  }

  /**
   * GET /repos/{owner}/{repo}/issues/{n}/comments. GitHub lists them in pages, Gitea all at once, without a link to a next page
   * (routers/api/v1/repo/issue_comment.go, ListIssueComments).
   */
  comments(on: host.IssueRef): AsyncIterable<host.Comment> {
    return this.rest.items(`${issuePath(on)}/comments`, z.array(comment), { per_page: PAGE_SIZE })
  }

  /** PATCH /repos/{owner}/{repo}/issues/comments/{id} (docs.github.com/rest/issues/comments; Gitea: issueEditComment). */
  async editComment({ owner, repo }: host.Repo, of: number, body: string): Promise<host.CommentRef> {
    const where = apiPath`/repos/${owner}/${repo}/issues/comments/${of}`
    const { id, url } = (await this.rest.call('PATCH', where, { body: { body }, answer: comment })).value
    return { id, url }
  }

  /**
   * POST …/reactions of the issue or comment: 201 when added, 200 when it already existed. Gitea returns no id, and
   * treats a review's comment like any other.
   */
  async react(
    to: host.IssueRef,
    content: Reaction,
    comment?: host.CommentTarget,
  ): Promise<host.ReactionResult> {
    const { owner, repo } = to
    const of = comment?.kind === 'review' ? this.reviewed : 'issues'
    const subject = comment ? apiPath`/repos/${owner}/${repo}/${of}/comments/${comment.id}` : issuePath(to)
    const call = { body: { content }, answer: reaction }
    const { status, value } = await this.rest.call('POST', `${subject}/reactions`, call)
    return { id: value.id ?? null, content, created: status === 201 }
  }

  /** GET /repos/{owner}/{repo}/pulls/{n}: the commit at its head. */
  protected async headOf(pull: host.IssueRef): Promise<string> {
    return (await this.rest.call('GET', pullPath(pull), { answer: head })).value.head.sha
  }
}
