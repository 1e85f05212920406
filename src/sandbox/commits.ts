import { createHash } from 'node:crypto'
import type { Check } from './resources/checks.js'
import { BoundedMap } from './bounded.js'

/** Maximum number of commits with their checks, and of statuses; the oldest are removed first. */
const LIMIT = 1000

/** Commit that was pushed here. Those of the initial contents have no message. */
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

export type StatusState = 'error' | 'failure' | 'pending' | 'success'

/** Result that a program reported of a commit. */
export interface Status {
  readonly id: number
  readonly repo: string
  readonly sha: string
  readonly context: string
  readonly state: StatusState
  readonly description: string | null
  readonly targetUrl: string | null
  readonly user: string
  readonly createdAt: string
}

/** Heads of branches, commits, their checks and statuses, in memory and bounded. */
export class Commits {
  readonly #heads = new Map<string, string>()
  readonly #known = new BoundedMap<string, true>(LIMIT)
  readonly #checks = new BoundedMap<string, Check>(LIMIT)
  readonly #statuses = new BoundedMap<number, Status>(LIMIT)

  /** Sets the head of a branch, which is created if it is new. */
  setHead(repo: string, branch: string, sha: string): void {
    this.#heads.set(`${repo} ${branch}`, sha)
    this.#known.set(`${repo} ${sha}`, true)
  }

  head(repo: string, branch: string): string | undefined {
    return this.#heads.get(`${repo} ${branch}`)
  }

  /** Hash of the commit that a branch or a hash names, if it is known. */
  resolve(repo: string, ref: string): string | undefined {
    const head = this.head(repo, ref.replace(/^(?:refs\/)?heads\//, ''))
    return head ?? (this.#known.has(`${repo} ${ref}`) ? ref : undefined)
  }

  setCheck(repo: string, check: Check): void {
    this.#checks.set(`${repo} ${check.sha}`, check)
  }

  checks(repo: string, sha: string): readonly Check[] {
    const check = this.#checks.get(`${repo} ${sha}`)
    return check ? [check] : []
  }

  addStatus(status: Status): void {
    this.#statuses.set(status.id, status)
  }

  /** Newest status of each context, newest first. */
  statuses(repo: string, sha: string): readonly Status[] {
    const ofCommit = [...this.#statuses.values()].filter((each) => each.repo === repo && each.sha === sha)
    return [...new Map(ofCommit.map((status) => [status.context, status])).values()].toReversed()
  }
}

/** Hash of 40 hex digits, as a commit's. */
export function hashOf(text: string): string {
  return createHash('sha1').update(text).digest('hex')
}
