import type { Clock } from '../base/time.js'
import type { MergeMethod, Reaction as Content } from '../codehost/host.js'
import { BoundedMap } from './bounded.js'
import { type Commit, Commits, hashOf, type Status } from './commits.js'
import type {
  Comment,
  Issue,
  Merge,
  Pull,
  Reaction,
  Repo,
  RequestEntry,
  ReviewComment,
  Subject,
  User,
} from './model.js'
import { FIRST_FREE_ID, MAIN, seed } from './seed.js'

/** Maximum number of comments, and of reactions; the oldest are removed first. */
const CONTENT_LIMIT = 10_000
/** Number of most recent requests recorded. */
const REQUEST_LIMIT = 1000

/** Contents of the sandbox, in memory and bounded. Properties read them, methods change them. */
export class SandboxState {
  readonly repos: readonly Repo[]
  readonly reviewComments: readonly ReviewComment[]
  readonly commits = new Commits()
  readonly #clock: Clock
  readonly #users: User[]
  readonly #issues: Map<string, Issue>
  readonly #comments = new BoundedMap<number, Comment>(CONTENT_LIMIT)
  readonly #reactions = new BoundedMap<string, Reaction>(CONTENT_LIMIT)
  readonly #requests = new BoundedMap<number, RequestEntry>(REQUEST_LIMIT)
  #nextId = FIRST_FREE_ID
  #requestCount = 0

  constructor(clock: Clock) {
    const { users, repos, issues, reviewComments } = seed(timestamp(clock()))
    this.#users = [...users]
    this.repos = repos
    this.reviewComments = reviewComments
    this.#issues = new Map(issues.map((issue) => [issueKey(issue.repo, issue.number), issue]))
    this.#clock = clock
    for (const { fullName } of repos) this.commits.setHead(fullName, MAIN.ref, MAIN.sha)
    for (const { repo, pull } of issues) if (pull) this.commits.setHead(repo, pull.head.ref, pull.head.sha)
  }

  /** The account of that name. */
  user(login: string): User | undefined {
    return this.#users.find((user) => user.login === login)
  }

  /** The account of that name, made with this type if there is none. */
  account(login: string, type: User['type']): User {
    const known = this.user(login)
    if (known) return known
    const made = { id: this.newId(), login, type }
    this.#users.push(made)
    return made
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
    const now = this.now()
    const comment = { id: this.newId(), repo, issueNumber, user, body, createdAt: now, updatedAt: now }
    this.#comments.set(comment.id, comment)
    this.#issues.set(issueKey(repo, issueNumber), { ...issue, commentCount: issue.commentCount + 1 })
    return comment
  }

  editComment(comment: Comment, body: string): Comment {
    const edited = { ...comment, body, updatedAt: this.now() }
    this.#comments.set(comment.id, edited)
    return edited
  }

  /** Adds a reaction, or returns the user's earlier one of the same kind. */
  addReaction(subject: Subject, user: string, content: Content): { reaction: Reaction; created: boolean } {
    const key = `${subject.kind} ${subject.id} ${user} ${content}`
    const known = this.#reactions.get(key)
    if (known) return { reaction: known, created: false }
    const reaction = { id: this.newId(), subject, content, user, createdAt: this.now() }
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
    const mergedAt = this.now()
    const sha = hashOf(`${issue.pull.head.sha} ${mergedAt}`)
    const merge = { repo: issue.repo, pullNumber: issue.number, ...how, sha, user, mergedAt }
    const merged = { ...issue, closedAt: mergedAt, pull: { ...issue.pull, merge } }
    this.#issues.set(issueKey(issue.repo, issue.number), merged)
    return merge
  }

  record(request: RequestEntry): void {
    this.#requests.set(this.#requestCount++, request)
  }

  /** Adds a commit to a branch, and to the open pull requests from it. Undefined when there is no such branch. */
  push(repo: string, branch: string, user: string, message: string): Commit | undefined {
    const before = this.commits.head(repo, branch)
    if (before === undefined) return undefined
    const sha = hashOf(`${before} ${this.newId()} ${message}`)
    this.commits.setHead(repo, branch, sha)
    for (const issue of this.pullsFrom(repo, branch)) {
      const pull = { ...issue.pull, head: { ...issue.pull.head, sha } }
      this.#issues.set(issueKey(repo, issue.number), { ...issue, pull })
    }
    return { sha, repo, branch, before, message, user, createdAt: this.now() }
  }

  /** Open pull requests from a branch. */
  pullsFrom(repo: string, branch: string): readonly (Issue & { readonly pull: Pull })[] {
    return this.issues.flatMap((issue) => {
      const { pull } = issue
      const isFrom = issue.repo === repo && pull?.head.ref === branch && !issue.closedAt
      return isFrom ? [{ ...issue, pull }] : []
    })
  }

  addStatus(status: Omit<Status, 'id' | 'createdAt'>): Status {
    const added = { id: this.newId(), ...status, createdAt: this.now() }
    this.commits.addStatus(added)
    return added
  }

  newId(): number {
    return this.#nextId++
  }

  /** The current time, to the second. */
  now(): string {
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
