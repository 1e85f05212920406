import { hashOf } from './commits.js'
import { FAULT_NAMES, type FaultName } from './faults.js'
import type { Issue, Pull, Repo, ReviewComment, User } from './model.js'

/** Account of every sign-in, and owner of the repositories. */
export const OWNER = 'octo'
export const DEMO = `${OWNER}/demo`
const CONTRIBUTOR = 'mona'

/** Default branch of every repository, with its first commit. */
export const MAIN = { ref: 'main', sha: hashOf('main') }

// Ids differ from issue numbers and from each other, so that mixing them up fails.
const FIRST_REPO_ID = 101
const FIRST_ISSUE_ID = 1001
const FIRST_PULL_ID = 2001
const REVIEW_COMMENT_ID = 3001
/** First id for records created later. */
export const FIRST_FREE_ID = 5001

interface RepoPlan {
  readonly name: string
  readonly description: string
  readonly hasIssues: boolean
  readonly issues: readonly IssuePlan[]
}

interface IssuePlan {
  readonly title: string
  readonly body: string
  readonly locked?: true
  readonly pull?: { readonly branch: string; readonly mergeable: boolean; readonly sha?: string }
}

const FAULT_MEANINGS: Readonly<Record<FaultName, string>> = {
  '502': 'Writes are answered 502 Bad Gateway',
  'rate-limit': 'Writes meet the hourly rate limit',
  'secondary-limit': 'Writes meet the limit on writing too fast',
  slow: 'Writes take a minute',
  reset: 'The connection is reset before anything is written',
  'reset-after': 'The connection is reset after the write was done',
  'invalid-json': 'Writes are answered with broken JSON',
}

const PLAN: readonly RepoPlan[] = [
  {
    name: 'demo',
    description: 'A small repository to try things on',
    hasIssues: true,
    issues: [
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
    ],
  },
  {
    name: 'no-issues',
    description: 'Issues are disabled here',
    hasIssues: false,
    issues: [{ title: 'Out of reach', body: 'No request gets here.' }],
  },
  ...FAULT_NAMES.map((fault) => ({
    name: `fault-${fault}`,
    description: FAULT_MEANINGS[fault],
    hasIssues: true,
    issues: [
      { title: 'Comment on me', body: 'The answer is the fault.' },
      { title: 'Merge me', body: 'The answer is the fault.', pull: { branch: fault, mergeable: true } },
    ],
  })),
]

export interface Seed {
  readonly users: readonly User[]
  readonly repos: readonly Repo[]
  readonly issues: readonly Issue[]
  readonly reviewComments: readonly ReviewComment[]
}

/**
 * Initial contents of every sandbox: `octo/demo` with one example per case, a repository without issues, and one repository
 * per fault with issue #1 and pull request #2.
 */
export function seed(createdAt: string): Seed {
  const comment = {
    id: REVIEW_COMMENT_ID,
    repo: DEMO,
    issueNumber: 2,
    user: CONTRIBUTOR,
    createdAt,
    updatedAt: createdAt,
  }
  return {
    users: [OWNER, CONTRIBUTOR].map((login, index) => ({ id: index + 1, login, type: 'User' })),
    repos: PLAN.map(({ name, description, hasIssues }, index) => ({
      id: FIRST_REPO_ID + index,
      owner: OWNER,
      name,
      fullName: `${OWNER}/${name}`,
      description,
      hasIssues,
      createdAt,
    })),
    issues: PLAN.flatMap(({ name, issues }) =>
      issues.map((plan, index) => ({ plan, number: index + 1, repo: `${OWNER}/${name}` })),
    ).map(({ plan, number, repo }, index) => ({
      id: FIRST_ISSUE_ID + index,
      repo,
      number,
      title: plan.title,
      body: plan.body,
      user: CONTRIBUTOR,
      locked: plan.locked ?? false,
      createdAt,
      closedAt: null,
      commentCount: 0,
      pull: plan.pull && makePull(FIRST_PULL_ID + index, plan.pull),
    })),
    reviewComments: [{ ...comment, path: 'README.md', body: 'Is "Hello" warm enough?' }],
  }
}

function makePull(id: number, plan: NonNullable<IssuePlan['pull']>): Pull {
  const { branch, mergeable, sha = hashOf(`${id} ${branch}`) } = plan
  return {
    id,
    head: { ref: branch, sha },
    base: MAIN,
    mergeable,
    merge: undefined,
  }
}
