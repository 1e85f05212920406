import { createHash } from 'node:crypto'
import type { Clock } from '../base/time.js'
import type { MergeMethod, Reaction as Content } from '../codehost/actions.js'
import { PRESETS } from './faults.js'
import { requireFound } from './protocol.js'

// Plain records that refer to each other by name and number, and so are easy to compare and print. Times are UTC, to
// the second.

export interface User {
  readonly id: number
  readonly login: string
  readonly type: 'User' | 'Organization'
}

export interface StoredRepo {
  readonly id: number
  readonly name: string
  readonly fullName: string
  readonly description: string
  readonly hasIssues: boolean
  readonly createdAt: string
}

/** Fields that make an issue a pull request. */
export interface Pull {
  readonly id: number
  readonly head: { readonly ref: string; readonly sha: string }
  readonly base: { readonly ref: string; readonly sha: string }
  readonly mergeable: boolean
  readonly merge: Merge | undefined
}

export interface Issue {
  readonly id: number
  readonly repo: string
  readonly number: number
  readonly title: string
  readonly body: string
  readonly user: string
  readonly locked: boolean
  readonly createdAt: string
  readonly closedAt: string | null
  readonly commentCount: number
  readonly pull: Pull | undefined
}

export type PullIssue = Issue & { readonly pull: Pull }

export interface StoredComment {
  readonly id: number
  readonly repo: string
  readonly issueNumber: number
  readonly user: string
  readonly body: string
  readonly createdAt: string
  readonly updatedAt: string
}

export interface ReviewComment extends StoredComment {
  readonly path: string
}

/** Way of a merge, with the message of its commit. */
interface MergeOptions {
  readonly method: MergeMethod
  readonly title: string | undefined
  readonly message: string | undefined
}

export interface Merge extends MergeOptions {
  readonly repo: string
  readonly pullNumber: number
  readonly sha: string
  readonly user: string
  readonly mergedAt: string
}

export interface ReactionSubject {
  readonly kind: 'issue' | 'comment' | 'review_comment'
  readonly id: number
}

export interface StoredReaction {
  readonly id: number
  readonly subject: ReactionSubject
  readonly content: Content
  readonly user: string
  readonly createdAt: string
}

/** A commit that was pushed to the sandbox. */
export interface Push {
  readonly sha: string
  readonly repo: string
  readonly branch: string
  /** Previous head of the branch. */
  readonly before: string
  readonly message: string
  /** Commits before the head that are new on the branch: those of a pull request that was merged. */
  readonly others: readonly { readonly sha: string; readonly message: string }[]
  readonly createdAt: string
}

/** Suite of one check run, of a pushed commit. */
export interface CheckSuite {
  readonly suiteId: number
  readonly runId: number
  readonly push: Push
  /** Null while it runs. */
  result: { readonly conclusion: 'success' | 'failure'; readonly completedAt: string } | null
}

/** Status of a commit that a program reported. */
export interface CommitStatus {
  readonly id: number
  readonly context: string
  readonly state: 'error' | 'failure' | 'pending' | 'success'
  readonly description: string | null
  readonly targetUrl: string | null
  readonly createdAt: string
}

/** A commit that is or was the head of a branch. */
export interface Commit {
  readonly repo: string
  readonly sha: string
  check: CheckSuite | undefined
  /** Newest status of each context. */
  readonly statuses: Map<string, CommitStatus>
}

/** Received request, without query and headers, and therefore without secrets. */
export interface RequestEntry {
  readonly method: string
  readonly path: string
}

/** Account of every sign-in, and owner of the repositories. */
export const OWNER = 'octo'
export const DEMO = `${OWNER}/demo`
const CONTRIBUTOR = 'mona'
/** Default branch of every repository, with its first commit. */
const MAIN = { ref: 'main', sha: sha1Hex('main') }

// Ids differ from issue numbers and from each other, so that confusing them fails.
const FIRST_REPO_ID = 101
const FIRST_ISSUE_ID = 1001
const FIRST_PULL_ID = 2001
const REVIEW_COMMENT_ID = 3001
/** First id for records created later. */
const FIRST_FREE_ID = 5001

interface Plan {
  readonly title: string
  readonly body: string
  readonly locked?: boolean
  /** Branch of a pull request. */
  readonly branch?: string
  readonly conflicts?: boolean
  readonly sha?: string
}

const DEMO_ISSUES: readonly Plan[] = [
  { title: 'Say hello', body: 'Leave a comment here, or a reaction.' },
  {
    title: 'Add a greeting',
    body: 'This pull request can be merged.',
    branch: 'greeting',
    // Head of GitHub's example, so that a synthesized delivery about this pull request names its real head.
    sha: 'ec26c3e57ca3a959ca5aad62de7213c562f8c821',
  },
  {
    title: 'Rewrite everything',
    body: 'This pull request conflicts with main and cannot be merged.',
    branch: 'rewrite',
    conflicts: true,
  },
  {
    title: 'A heated debate',
    body: 'This conversation is locked: comments and reactions are refused.',
    locked: true,
  },
  { title: 'Fix a typo', body: 'Another pull request that can be merged.', branch: 'typo' },
]

const body = 'The answer is the fault.'
const SEED: readonly (readonly [name: string, description: string, issues: readonly Plan[]])[] = [
  ['demo', 'A small repository to try things on', DEMO_ISSUES],
  ['no-issues', 'Issues are disabled here', [{ title: 'Out of reach', body: 'No request gets here.' }]],
  ...[...PRESETS].map(([fault, { description }]) => {
    const issues = [
      { title: 'Comment on me', body },
      { title: 'Merge me', body, branch: fault },
    ]
    return [`fault-${fault}`, description, issues] as const
  }),
]

/** Maximum number of comments, and of reactions; the oldest are removed first. */
const CONTENT_LIMIT = 10_000
/** Number of most recent requests recorded, and maximum number of commits with their checks and statuses. */
const OTHER_LIMIT = 1000

/**
 * Contents of the sandbox, in memory and bounded. Properties read them, methods change them; everything added belongs
 * to the user.
 */
export class SandboxState {
  readonly repos: readonly StoredRepo[]
  readonly reviewComments: readonly ReviewComment[]
  readonly #clock: Clock
  readonly #users = new Map<string, User>()
  readonly #issues = new Map<string, Issue>()
  readonly #comments = new BoundedMap<number, StoredComment>(CONTENT_LIMIT)
  readonly #reactions = new BoundedMap<string, StoredReaction>(CONTENT_LIMIT)
  readonly #requests = new BoundedMap<number, RequestEntry>(OTHER_LIMIT)
  /** Head of each branch, by `owner/name branch`. */
  readonly #heads = new Map<string, string>()
  readonly #pushedAt = new Map<string, string>()
  /** Commits by `owner/name sha`. */
  readonly #commits = new BoundedMap<string, Commit>(OTHER_LIMIT)
  #nextId = FIRST_FREE_ID
  #requestCount = 0

  constructor(clock: Clock) {
    this.#clock = clock
    const createdAt = this.now()
    for (const login of [OWNER, CONTRIBUTOR])
      this.#users.set(login, { id: this.#users.size + 1, login, type: 'User' })
    this.repos = SEED.map(([name, description, plans], index) => {
      const fullName = `${OWNER}/${name}`
      this.#setHead(fullName, MAIN.ref, MAIN.sha)
      for (const [position, plan] of plans.entries()) this.#addIssue(fullName, position + 1, plan)
      const hasIssues = name !== 'no-issues'
      return { id: FIRST_REPO_ID + index, name, fullName, description, hasIssues, createdAt }
    })
    const review = { id: REVIEW_COMMENT_ID, repo: DEMO, issueNumber: 2, user: CONTRIBUTOR, createdAt }
    const text = { path: 'README.md', body: 'Is "Hello" warm enough?' }
    this.reviewComments = [{ ...review, ...text, updatedAt: createdAt }]
  }

  #addIssue(repo: string, number: number, { title, body, locked = false, branch, ...plan }: Plan): void {
    const index = this.#issues.size
    const pullId = FIRST_PULL_ID + index
    const head = branch !== undefined && { ref: branch, sha: plan.sha ?? sha1Hex(`${pullId} ${branch}`) }
    if (head) this.#setHead(repo, head.ref, head.sha)
    this.#setIssue({
      id: FIRST_ISSUE_ID + index,
      repo,
      number,
      title,
      body,
      user: CONTRIBUTOR,
      locked,
      createdAt: this.now(),
      closedAt: null,
      commentCount: 0,
      pull: head ? { id: pullId, head, base: MAIN, mergeable: !plan.conflicts, merge: undefined } : undefined,
    })
  }

  /** Finds the account with this name. An unknown one is an organization of the user. */
  user(login: string): User {
    const user = this.#users.get(login) ?? { id: this.newId(), login, type: 'Organization' }
    this.#users.set(login, user)
    return user
  }

  get issues(): readonly Issue[] {
    return [...this.#issues.values()]
  }

  get comments(): readonly StoredComment[] {
    return [...this.#comments.values()]
  }

  get reactions(): readonly StoredReaction[] {
    return [...this.#reactions.values()]
  }

  get merges(): readonly Merge[] {
    return this.issues.flatMap((issue) => issue.pull?.merge ?? [])
  }

  get requests(): readonly RequestEntry[] {
    return [...this.#requests.values()]
  }

  /** The repository with this full name. Like GitHub, it ignores case. @throws GitHubError 404 */
  repo(fullName: string): StoredRepo {
    const wanted = fullName.toLowerCase()
    return requireFound(this.repos.find((repo) => repo.fullName === wanted))
  }

  issue(repo: string, number: number): Issue | undefined {
    return this.#issues.get(`${repo}#${number}`)
  }

  comment(repo: string, id: number): StoredComment | undefined {
    const comment = this.#comments.get(id)
    return comment?.repo === repo ? comment : undefined
  }

  reviewComment(repo: string, id: number): ReviewComment | undefined {
    return this.reviewComments.find((comment) => comment.repo === repo && comment.id === id)
  }

  commentsOn({ repo, number }: Issue): readonly StoredComment[] {
    return this.comments.filter((comment) => comment.repo === repo && comment.issueNumber === number)
  }

  reactionsTo(subject: ReactionSubject): readonly StoredReaction[] {
    return this.reactions.filter(({ subject: { kind, id } }) => kind === subject.kind && id === subject.id)
  }

  addComment(issue: Issue, body: string): StoredComment {
    const { repo, number: issueNumber } = issue
    const now = this.now()
    const comment = { id: this.newId(), repo, issueNumber, user: OWNER, body, createdAt: now, updatedAt: now }
    this.#comments.set(comment.id, comment)
    this.#setIssue({ ...issue, commentCount: issue.commentCount + 1 })
    return comment
  }

  editComment(comment: StoredComment, body: string): StoredComment {
    const edited = { ...comment, body, updatedAt: this.now() }
    this.#comments.set(comment.id, edited)
    return edited
  }

  /** Adds a reaction, or returns the user's earlier one of the same kind. */
  addReaction(subject: ReactionSubject, content: Content): { reaction: StoredReaction; created: boolean } {
    const key = `${subject.kind} ${subject.id} ${content}`
    const known = this.#reactions.get(key)
    if (known) return { reaction: known, created: false }
    const reaction = { id: this.newId(), subject, content, user: OWNER, createdAt: this.now() }
    this.#reactions.set(key, reaction)
    return { reaction, created: true }
  }

  /**
   * Merges and closes a pull request, and pushes the merge to its base branch. The caller has checked that it is
   * mergeable.
   */
  merge(issue: PullIssue, how: MergeOptions): { readonly merged: PullIssue; readonly push: Push } {
    const { repo, number: pullNumber, pull } = issue
    const { head, base } = pull
    const mergedAt = this.now()
    const before = this.#heads.get(`${repo} ${base.ref}`) ?? base.sha
    const sha = sha1Hex(`${head.sha} ${before} ${mergedAt}`)
    const merge = { repo, pullNumber, ...how, sha, user: OWNER, mergedAt }
    this.#setHead(repo, base.ref, sha)
    const merged = this.#setIssue({ ...issue, closedAt: mergedAt, pull: { ...pull, merge } })
    const others = how.method === 'merge' ? [{ sha: head.sha, message: issue.title }] : []
    const message = messageOf(issue, how)
    return { merged, push: { sha, repo, branch: base.ref, before, message, others, createdAt: mergedAt } }
  }

  record(request: RequestEntry): void {
    this.#requests.set(this.#requestCount++, request)
  }

  /** Adds a commit to a branch, and to the open pull requests from it. Undefined if there is no such branch. */
  push(repo: string, branch: string, message: string): Push | undefined {
    const before = this.#heads.get(`${repo} ${branch}`)
    if (before === undefined) return undefined
    const sha = sha1Hex(`${before} ${this.newId()} ${message}`)
    this.#setHead(repo, branch, sha)
    for (const issue of this.pullsFrom(repo, branch))
      this.#setIssue({ ...issue, pull: { ...issue.pull, head: { ref: branch, sha } } })
    return { sha, repo, branch, before, message, others: [], createdAt: this.now() }
  }

  /** Open pull requests from a branch. */
  pullsFrom(repo: string, branch: string): readonly PullIssue[] {
    return this.issues.flatMap((issue) => {
      const { pull } = issue
      return issue.repo === repo && pull?.head.ref === branch && !issue.closedAt ? [{ ...issue, pull }] : []
    })
  }

  /** Finds the commit that a branch or a hash names. */
  commit(repo: string, ref: string): Commit | undefined {
    const head = this.#heads.get(`${repo} ${ref.replace(/^(?:refs\/)?heads\//, '')}`)
    return this.#commits.get(`${repo} ${head ?? ref}`)
  }

  newId(): number {
    return this.#nextId++
  }

  /** The current time, to the second. */
  now(): string {
    return timestamp(this.#clock())
  }

  #setIssue<T extends Issue>(issue: T): T {
    this.#issues.set(`${issue.repo}#${issue.number}`, issue)
    return issue
  }

  /** When a branch of the repository last changed. */
  pushedAt(repo: string): string {
    return this.#pushedAt.get(repo) ?? this.now()
  }

  #setHead(repo: string, branch: string, sha: string): void {
    this.#pushedAt.set(repo, this.now())
    this.#heads.set(`${repo} ${branch}`, sha)
    this.#commits.set(`${repo} ${sha}`, { repo, sha, check: undefined, statuses: new Map() })
  }
}

/**
 * Message of the commit that a merge makes, as GitHub writes it unless title and message are given. The commit of a
 * rebase keeps its own.
 */
function messageOf(
  { number, title: own, pull }: PullIssue,
  { method, title, message }: MergeOptions,
): string {
  if (method === 'rebase') return own
  const isSquash = method === 'squash'
  const first =
    title ??
    (isSquash ? `${own} (#${number})` : `Merge pull request #${number} from ${OWNER}/${pull.head.ref}`)
  const rest = message ?? (isSquash ? '' : own)
  return rest === '' ? first : `${first}\n\n${rest}`
}

/** Map of at most `limit` entries, which removes the oldest when full. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #limit: number

  constructor(limit: number) {
    super()
    this.#limit = limit
  }

  override set(key: K, value: V): this {
    super.set(key, value)
    const oldest = this.keys().next()
    if (this.size > this.#limit && !oldest.done) this.delete(oldest.value)
    return this
  }
}

/** Hash of 40 hex digits, as a commit's. */
export function sha1Hex(text: string): string {
  return createHash('sha1').update(text).digest('hex')
}

/** ISO 8601 time in UTC without fractions of a second, like GitHub's. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
