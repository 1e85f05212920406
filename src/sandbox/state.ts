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

/** How many comments, and how many reactions, are kept; the oldest go first. */
const CONTENT_LIMIT = 10_000
/** How many of the last requests are kept. */
const REQUEST_LIMIT = 1000

/** Everything the sandbox's code host holds, in memory and bounded. The properties are read, the methods change. */
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

  /** The last requests, oldest first. */
  get requests(): readonly RequestEntry[] {
    return [...this.#requests.values()]
  }

  /** Names are compared without case, as GitHub does. */
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

  /** A second reaction of the same kind by the same user is the first one. */
  addReaction(subject: Subject, user: string, content: Content): { reaction: Reaction; created: boolean } {
    const key = `${subject.kind} ${subject.id} ${user} ${content}`
    const known = this.#reactions.get(key)
    if (known) return { reaction: known, created: false }
    const reaction = { id: this.#nextId++, subject, content, user, createdAt: this.#now() }
    this.#reactions.set(key, reaction)
    return { reaction, created: true }
  }

  /** Merges a pull request that can be merged, and closes it. */
  merge(
    issue: Issue,
    user: string,
    how: { method: MergeMethod; title: string | undefined; message: string | undefined },
  ): Merge {
    if (!issue.pull) throw new Error(`${issue.repo}#${issue.number} is no pull request`)
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

/** GitHub's times have no fraction of a second. */
function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
