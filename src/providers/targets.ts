export interface RepoTarget {
  readonly owner: string
  readonly repo: string
}

/** An issue, or a pull request, which has the same comments. */
export interface IssueTarget extends RepoTarget {
  readonly issueNumber: number
}

export interface PullTarget extends RepoTarget {
  readonly pullNumber: number
}
