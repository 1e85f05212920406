import { createHash } from 'node:crypto'
import type { Clock } from '../base/time.js'
import type { MergeMethod, Reaction as Content } from '../codehost/host.js'
import type { FaultName } from './faults.js'

// Plain records that refer to each other by name and number: easy to compare and print. Times are UTC, to the second.

export interface User {
  readonly id: number
  readonly login: string
  readonly type: 'User' | 'Organization'
}

export interface Repo {
  readonly id: number
  readonly owner: string
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

export interface Comment {
  readonly id: number
  readonly repo: string
  readonly issueNumber: number
  readonly user: string
  readonly body: string
  readonly createdAt: string
  readonly updatedAt: string
}

export interface ReviewComment extends Comment {
  readonly path: string
}

export interface Merge {
  readonly repo: string
  readonly pullNumber: number
  readonly method: MergeMethod
  readonly title: string | undefined
  readonly message: string | undefined
  readonly sha: string
  readonly user: string
  readonly mergedAt: string
}

export interface Subject {
  readonly kind: 'issue' | 'comment' | 'review_comment'
  readonly id: number
}

export interface Reaction {
  readonly id: number
  readonly subject: Subject
  readonly content: Content
  readonly user: string
  readonly createdAt: string
}

/** Commit that was pushed here. */
export interface Commit {
  readonly sha: string
  readonly repo: string
  readonly branch: string
  /** Head of the branch before. */
  readonly before: string
  readonly message: string
  readonly user: string
  readonly createdAt: string
}

/** Suite of one check run, of a pushed commit. */
export interface Check {
  readonly suiteId: number
  readonly runId: number
  readonly commit: Commit
  /** Null while it runs. */
  readonly result: { readonly conclusion: 'success' | 'failure'; readonly completedAt: string } | null
}

/** Result that a program reported of a commit. */
export interface Status {
  readonly id: number
  readonly repo: string
  readonly sha: string
  readonly context: string
  readonly state: 'error' | 'failure' | 'pending' | 'success'
  readonly description: string | null
  readonly targetUrl: string | null
  readonly user: string
  readonly createdAt: string
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
const MAIN = { ref: 'main', sha: hashOf('main') }

// Ids differ from issue numbers and from each other, so that mixing them up fails.
const FIRST_REPO_ID = 101
const FIRST_ISSUE_ID = 1001
const FIRST_PULL_ID = 2001
const REVIEW_COMMENT_ID = 3001
/** First id for records created later. */
const FIRST_FREE_ID = 5001

interface IssuePlan {
  readonly title: string
  readonly body: string
  readonly locked?: boolean
  readonly pull?: { readonly branch: string; readonly mergeable: boolean; readonly sha?: string }
}

const DEMO_ISSUES: readonly IssuePlan[] = [
  { title: 'Say hello', body: 'Leave a comment here, or a reaction.' },
  {
    title: 'Add a greeting',
    body: 'This pull request can be merged.',
    // The head of GitHub's example, which made-up deliveries are: one about this pull request names its head.
    pull: { branch: 'greeting', mergeable: true, sha: 'ec26c3e57ca3a959ca5aad62de7213c562f8c821' },
  },
  {
    title: 'Rewrite everything',
    body: 'This pull request conflicts with main and cannot be merged.',
    pull: { branch: 'rewrite', mergeable: false },
  },
  {
    title: 'A heated debate',
    body: 'This conversation is locked: comments and reactions are refused.',
    locked: true,
  },
  {
    title: 'Fix a typo',
    body: 'Another pull request that can be merged.',
    pull: { branch: 'typo', mergeable: true },
  },
]

const FAULT_MEANINGS: Readonly<Record<FaultName, string>> = {
  '502': 'Writes are answered 502 Bad Gateway',
  'rate-limit': 'Writes meet the hourly rate limit',
  'secondary-limit': 'Writes meet the limit on writing too fast',
  slow: 'Writes take a minute',
  reset: 'The connection is reset before anything is written',
  'reset-after': 'The connection is reset after the write was done',
  'invalid-json': 'Writes are answered with broken JSON',
}

const body = 'The answer is the fault.'
const SEED: readonly (Pick<Repo, 'name' | 'description'> & { readonly issues: readonly IssuePlan[] })[] = [
  { name: 'demo', description: 'A small repository to try things on', issues: DEMO_ISSUES },
  {
    name: 'no-issues',
    description: 'Issues are disabled here',
    issues: [{ title: 'Out of reach', body: 'No request gets here.' }],
  },
  ...Object.entries(FAULT_MEANINGS).map(([fault, description]) => ({
    name: `fault-${fault}`,
    description,
    issues: [
      { title: 'Comment on me', body },
      { title: 'Merge me', body, pull: { branch: fault, mergeable: true } },
    ],
  })),
]

/** Maximum number of comments, and of reactions; the oldest are removed first. */
const CONTENT_LIMIT = 10_000
/** Number of most recent requests recorded, and maximum number of commits with their checks, and of statuses. */
const OTHER_LIMIT = 1000

/** Contents of the sandbox, in memory and bounded. Properties read them, methods change them. */
export class State {
  readonly repos: readonly Repo[]
  readonly reviewComments: readonly ReviewComment[]
  readonly #clock: Clock
  readonly #users = new Map<string, User>()
  readonly #issues = new Map<string, Issue>()
  readonly #comments = new BoundedMap<number, Comment>(CONTENT_LIMIT)
  readonly #reactions = new BoundedMap<string, Reaction>(CONTENT_LIMIT)
  readonly #requests = new BoundedMap<number, RequestEntry>(OTHER_LIMIT)
  /** Head of each branch, by `owner/name branch`. */
  readonly #heads = new Map<string, string>()
  /** Known commits, by `owner/name sha`. */
  readonly #commits = new BoundedMap<string, true>(OTHER_LIMIT)
  readonly #checks = new BoundedMap<string, Check>(OTHER_LIMIT)
  readonly #statuses = new BoundedMap<number, Status>(OTHER_LIMIT)
  #nextId = FIRST_FREE_ID
  #requestCount = 0

  constructor(clock: Clock) {
    this.#clock = clock
    const now = this.now()
    for (const login of [OWNER, CONTRIBUTOR])
      this.#users.set(login, { id: this.#users.size + 1, login, type: 'User' })
    this.repos = SEED.map(({ name, description }, index) => {
      const fullName = `${OWNER}/${name}`
      const hasIssues = name !== 'no-issues'
      return {
        id: FIRST_REPO_ID + index,
        owner: OWNER,
        name,
        fullName,
        description,
        hasIssues,
        createdAt: now,
      }
    })
    for (const { name, issues } of SEED) {
      this.#setHead(`${OWNER}/${name}`, MAIN.ref, MAIN.sha)
      for (const [index, plan] of issues.entries()) this.#addIssue(`${OWNER}/${name}`, index + 1, plan)
    }
    const review = { id: REVIEW_COMMENT_ID, repo: DEMO, issueNumber: 2, user: CONTRIBUTOR, createdAt: now }
    this.reviewComments = [{ ...review, updatedAt: now, path: 'README.md', body: 'Is "Hello" warm enough?' }]
  }

  #addIssue(repo: string, number: number, { title, body, locked = false, pull: planned }: IssuePlan): void {
    const index = this.#issues.size
    const pull = planned && {
      id: FIRST_PULL_ID + index,
      head: { ref: planned.branch, sha: planned.sha ?? hashOf(`${FIRST_PULL_ID + index} ${planned.branch}`) },
      base: MAIN,
      mergeable: planned.mergeable,
      merge: undefined,
    }
    const id = FIRST_ISSUE_ID + index
    const made = { id, repo, number, title, body, user: CONTRIBUTOR, locked, createdAt: this.now() }
    this.#setIssue({ ...made, closedAt: null, commentCount: 0, pull })
    if (pull) this.#setHead(repo, pull.head.ref, pull.head.sha)
  }

  /** The account of that name. One that is not known is an organization: each is the user's. */
  user(login: string): User {
    const user = this.#users.get(login) ?? { id: this.newId(), login, type: 'Organization' }
    this.#users.set(login, user)
    return user
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
    return this.#issues.get(`${repo}#${number}`)
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
    this.#setIssue({ ...issue, commentCount: issue.commentCount + 1 })
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
  merge(issue: PullIssue, user: string, how: Pick<Merge, 'method' | 'title' | 'message'>): PullIssue {
    const mergedAt = this.now()
    const sha = hashOf(`${issue.pull.head.sha} ${mergedAt}`)
    const merge = { repo: issue.repo, pullNumber: issue.number, ...how, sha, user, mergedAt }
    return this.#setIssue({ ...issue, closedAt: mergedAt, pull: { ...issue.pull, merge } })
  }

  record(request: RequestEntry): void {
    this.#requests.set(this.#requestCount++, request)
  }

  /** Adds a commit to a branch, and to the open pull requests from it. Undefined when there is no such branch. */
  push(repo: string, branch: string, user: string, message: string): Commit | undefined {
    const before = this.#heads.get(`${repo} ${branch}`)
    if (before === undefined) return undefined
    const sha = hashOf(`${before} ${this.newId()} ${message}`)
    this.#setHead(repo, branch, sha)
    for (const issue of this.pullsFrom(repo, branch))
      this.#setIssue({ ...issue, pull: { ...issue.pull, head: { ref: branch, sha } } })
    return { sha, repo, branch, before, message, user, createdAt: this.now() }
  }

  /** Open pull requests from a branch. */
  pullsFrom(repo: string, branch: string): readonly PullIssue[] {
    return this.issues.flatMap((issue) => {
      const { pull } = issue
      return issue.repo === repo && pull?.head.ref === branch && !issue.closedAt ? [{ ...issue, pull }] : []
    })
  }

  /** Hash of the commit that a branch or a hash names, if it is known. */
  resolve(repo: string, ref: string): string | undefined {
    const head = this.#heads.get(`${repo} ${ref.replace(/^(?:refs\/)?heads\//, '')}`)
    return head ?? (this.#commits.has(`${repo} ${ref}`) ? ref : undefined)
  }

  setCheck(check: Check): void {
    this.#checks.set(`${check.commit.repo} ${check.commit.sha}`, check)
  }

  check(repo: string, sha: string): Check | undefined {
    return this.#checks.get(`${repo} ${sha}`)
  }

  addStatus(status: Omit<Status, 'id' | 'createdAt'>): Status {
    const added = { id: this.newId(), ...status, createdAt: this.now() }
    this.#statuses.set(added.id, added)
    return added
  }

  /** Newest status of each context, newest first. */
  statuses(repo: string, sha: string): readonly Status[] {
    const ofCommit = [...this.#statuses.values()].filter((each) => each.repo === repo && each.sha === sha)
    return [...new Map(ofCommit.map((status) => [status.context, status])).values()].toReversed()
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

  #setHead(repo: string, branch: string, sha: string): void {
    this.#heads.set(`${repo} ${branch}`, sha)
    this.#commits.set(`${repo} ${sha}`, true)
  }
}

/** Map of at most `limit` entries, which removes its oldest when full: the sandbox lives in memory. */
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
export function hashOf(text: string): string {
  return createHash('sha1').update(text).digest('hex')
}

/** ISO 8601 time in UTC without fractions of a second, like GitHub's. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')
}
