// What Gitea copied from GitHub.
import { z } from 'zod'
import type { Comment, CommentRef, Repo, Subject } from './host.js'
import { PAGE_SIZE, path, Refusal, type Rest } from './rest.js'

export const login = z.object({ login: z.string() })
export const webAddress = z.url({ protocol: /^https?$/ })
const comment = z.object({ id: z.int(), html_url: webAddress })
const comments = z.array(
  comment.extend({ body: z.string().nullish(), user: z.object({ login: z.string() }).nullish() }),
)

/** The id of a commit: SHA-1, or SHA-256 in some of Gitea's repositories. */
const commit = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/)
const head = z.object({ head: z.object({ sha: commit }) })

/** A pull request is an issue, with the same comments. */
export const issuePath = ({ owner, repo, number }: Subject): string =>
  path`/repos/${owner}/${repo}/issues/${number}`
export const pullPath = ({ owner, repo, number }: Subject): string =>
  path`/repos/${owner}/${repo}/pulls/${number}`
export const hooksPath = ({ owner, repo }: Repo): string => path`/repos/${owner}/${repo}/hooks`

/** The calls of an account that are the same at GitHub and Gitea. */
export abstract class GitHubLikeAccount {
  protected readonly rest: Rest

  constructor(rest: Rest) {
    this.rest = rest
  }

  /** POST /repos/{owner}/{repo}/issues/{n}/comments. */
  async comment(on: Subject, body: string): Promise<CommentRef> {
    const call = { body: { body }, answer: comment }
    const { value } = await this.rest.call('POST', `${issuePath(on)}/comments`, call)
    return { id: value.id, url: value.html_url }
  }

  /**
   * GET /repos/{owner}/{repo}/issues/{n}/comments, oldest first. GitHub lists them in pages, and Gitea all at once, without
   * a link to a next page (Gitea's routers/api/v1/repo/issue_comment.go, ListIssueComments).
   */
  async *comments(on: Subject): AsyncGenerator<Comment> {
    const all = this.rest.pages(`${issuePath(on)}/comments`, comments, { per_page: PAGE_SIZE })
    for await (const page of all)
      for (const { id, html_url: url, body, user } of page)
        yield { id, url, body: body ?? '', author: user?.login }
  }

  /** PATCH /repos/{owner}/{repo}/issues/comments/{id} (docs.github.com/rest/issues/comments; Gitea: issueEditComment). */
  async editComment({ owner, repo }: Repo, id: number, body: string): Promise<CommentRef> {
    const where = path`/repos/${owner}/${repo}/issues/comments/${id}`
    const { value } = await this.rest.call('PATCH', where, { body: { body }, answer: comment })
    return { id: value.id, url: value.html_url }
  }

  /** GET /repos/{owner}/{repo}/pulls/{n}: the commit at its head. */
  protected async headOf(pull: Subject): Promise<string> {
    return (await this.rest.call('GET', pullPath(pull), { answer: head })).value.head.sha
  }
}

/** The fields of a pull request that show why it was not merged. Gitea has no `mergeable_state`, old versions no `draft`. */
const pullState = z.object({
  state: z.string(),
  merged: z.boolean(),
  draft: z.boolean().optional(),
  /** Null while GitHub checks; at Gitea false also for a draft and while it checks. */
  mergeable: z.boolean().nullish(),
  mergeable_state: z.string().optional(),
})

/** Messages of a code host for reasons that the pull request does not show. */
interface RefusalMessages {
  readonly forbidden: RegExp
  readonly draft: RegExp
}

/**
 * The error to throw for a refused merge. Code hosts answer 404 and 405 for many reasons, so it reads the pull request after
 * these and names the reason: `conflict` when it is already merged, closed, a draft, conflicts, or lacks approvals
 * or checks; `forbidden` when it can be read but not merged. Otherwise, or when it cannot be read, `error` itself.
 * Only reads: the merge is not sent again.
 *
 * Sources: docs.github.com/rest/pulls/pulls ("Get a pull request"; the values of `mergeable_state` are those of GraphQL's
 * MergeStateStatus); Gitea's routers/api/v1/repo/pull.go (MergePullRequest) and modules/structs/pull.go.
 */
export async function whyNotMerged(
  rest: Rest,
  pull: Subject,
  error: unknown,
  messages?: RefusalMessages,
): Promise<unknown> {
  if (!(error instanceof Refusal) || ![404, 405].includes(error.providerStatus)) return error
  const found = (await rest.call('GET', pullPath(pull), { answer: pullState }).catch(() => undefined))?.value
  if (!found) return error
  const { upstreamMessage: message, providerStatus } = error
  const refused = (kind: 'conflict' | 'forbidden', why: string): Refusal =>
    new Refusal(kind, `Not merged: ${why}`, { providerStatus })
  const quoted = message && ` (${rest.label}: ${message})`
  if (found.merged) return refused('conflict', 'it is already merged')
  if (found.state === 'closed') return refused('conflict', 'it is closed')
  if (providerStatus === 404 || messages?.forbidden.test(message))
    return refused('forbidden', `this account or its token may not merge it${quoted}`)
  const why = messages?.draft.test(message) ? IS_DRAFT : reasonOf(found)
  return why ? refused('conflict', why + quoted) : error
}

const IS_DRAFT = 'it is a draft'

function reasonOf({ draft, mergeable, mergeable_state }: z.infer<typeof pullState>): string | undefined {
  if (draft) return IS_DRAFT
  const reason = REASONS.get(mergeable_state ?? '')
  if (reason || mergeable !== false) return reason
  return 'it conflicts with its base branch, or the code host is still checking that'
}

const REASONS: ReadonlyMap<string, string> = new Map([
  ['dirty', 'it conflicts with its base branch'],
  ['behind', 'its branch must first be brought up to date with the base branch'],
  ['blocked', 'approvals or checks are missing'],
  ['draft', IS_DRAFT],
  ['unknown', 'the code host is still checking whether it can be merged; try again'],
])
