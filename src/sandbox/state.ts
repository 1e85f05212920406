import { createHash } from 'node:crypto'
import type { Clock } from '../base/time.js'
import type { MergeMethod, Reaction as Content } from '../providers/provider.js'
import { BoundedMap } from './bounded.js'
import type {
  Comment,
  Issue,
  Merge,
  Reaction,
  Repo,
  RequestEntry,
  ReviewComment,
  Subject,
  User,
} from './model.js'
import { FIRST_FREE_ID, seed } from './seed.js'

/** Maximum number of comments, and of reactions; the oldest are removed first. */
const CONTENT_LIMIT = 10_000
/** Number of most recent requests recorded. */
const REQUEST_LIMIT = 1000

/** Contents of the sandbox, in memory and bounded. Properties read them, methods change them. */
export class SandboxState {
  readonly users: readonly User[]
  readonly repos: readonly Repo[]
  readonly reviewComments: readonly ReviewComment[]
  readonly #clock: Clock
  readonly #issues: Map<string, Issue>
  readonly #comments = new BoundedMap<number, Comment>(CONTENT_LIMIT)
  readonly #reactions = new BoundedMap<string, Reaction>(CONTENT_LIMIT)
  readonly #requests = new BoundedMap<number, RequestEntry>(REQUEST_LIMIT)
  #nextId = FIRST_FREE_ID
  #requestCount = 0

  constructor(clock: Clock) {
    const { users, repos, issues, reviewComments } = seed(timestamp(clock()))
    this.users = users
    this.repos = repos
    this.reviewComments = reviewComments
    this.#issues = new Map(issues.map((issue) => [issueKey(issue.repo, issue.number), issue]))
    this.#clock = clock
  }

  get issues(): readonly Issue[] {
    return [...this.#issues.values()]
  }

  get comments(): readonly Comment[] {
    return [...this.#comments.values()]
  }

  get reactions(): readonly Reaction[] {
    return [...this.#reactions.values()]
  }

  get merges(): readonly Merge[] {
    return this.issues.flatMap((issue) => issue.pull?.merge ?? [])
  }

  get requests(): readonly RequestEntry[] {
    return [...this.#requests.values()]
  }

  /** Finds a repository. Like GitHub, it ignores case. */
  repo(owner: string, name: string): Repo | undefined {
    const wanted = `${owner}/${name}`.toLowerCase()
    return this.repos.find((repo) => repo.fullName === wanted)
  }

  issue(repo: string, number: number): Issue | undefined {
    return this.#issues.get(issueKey(repo, number))
  }

  comment(repo: string, id: number): Comment | undefined {
    const comment = this.#comments.get(id)
    return comment?.repo === repo ? comment : undefined
  }

  reviewComment(repo: string, id: number): ReviewComment | undefined {
    return this.reviewComments.find((comment) => comment.repo === repo && comment.id === id)
  }

  commentsOn({ repo, number }: Issue): readonly Comment[] {
    return this.comments.filter((comment) => comment.repo === repo && comment.issueNumber === number)
  }

  reactionsTo(subject: Subject): readonly Reaction[] {
    return this.reactions.filter(({ subject: { kind, id } }) => kind === subject.kind && id === subject.id)
  }

  addComment(issue: Issue, user: string, body: string): Comment {
    const { repo, number: issueNumber } = issue
    const comment = { id: this.#nextId++, repo, issueNumber, user, body, createdAt: this.#now() }
    this.#comments.set(comment.id, comment)
    this.#issues.set(issueKey(repo, issueNumber), { ...issue, commentCount: issue.commentCount + 1 })
    return comment
  }

  /** Adds a reaction, or returns the user's earlier one of the same kind. */
  addReaction(subject: Subject, user: string, content: Content): { reaction: Reaction; created: boolean } {
    const key = `${subject.kind} ${subject.id} ${user} ${content}`
    const known = this.#reactions.get(key)
    if (known) return { reaction: known, created: false }
    const reaction = { id: this.#nextId++, subject, content, user, createdAt: this.#now() }
    this.#reactions.set(key, reaction)
    return { reaction, created: true }
  }

  /** Merges and closes a pull request, which the caller has checked to be mergeable. */
  merge(
    issue: Issue,
    user: string,
    how: { method: MergeMethod; title: string | undefined; message: string | undefined },
  ): Merge {
    if (!issue.pull) throw new Error(`${issue.repo}#${issue.number} is not a pull request`)
    const mergedAt = this.#now()
    const sha = createHash('sha1').update(`${issue.pull.head.sha} ${mergedAt}`).digest('hex')
    const merge = { repo: issue.repo, pullNumber: issue.number, ...how, sha, user, mergedAt }
    const merged = { ...issue, closedAt: mergedAt, pull: { ...issue.pull, merge } }
    this.#issues.set(issueKey(issue.repo, issue.number), merged)
    return merge
  }

  record(request: RequestEntry): void {
    this.#requests.set(this.#requestCount++, request)
  }

  #now(): string {
    return timestamp(this.#clock())
  }
}

function issueKey(repo: string, number: number): string {
  return `${repo}#${number}`
}

/** ISO 8601 time in UTC without fractions of a second, like GitHub's. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
