import type { MergeMethod, Reaction as ReactionContent } from '../codehost/host.js'

// Plain records that refer to each other by name and number: easy to compare and print. Times are UTC, to the second.

export interface User {
  readonly id: number
  readonly login: string
  /** `Bot`: an App that acts by itself. */
  readonly type: 'User' | 'Bot' | 'Organization'
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
  readonly content: ReactionContent
  readonly user: string
  readonly createdAt: string
}

/** Received request, without query and headers, and therefore without secrets. */
export interface RequestEntry {
  readonly method: string
  readonly path: string
}
