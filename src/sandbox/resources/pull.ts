import { nodeId } from './node-id.js'
import type { Issue, Pull } from '../model.js'
import { association, webUrl } from './issue.js'
import { repositoryResource } from './repository.js'
import { userResource } from './user.js'
import type { View } from './view.js'

/** Pull request (https://docs.github.com/rest/pulls/pulls). */
export function pullResource(view: View, issue: Issue, pull: Pull) {
  const links = pullLinks(view, issue, pull)
  return {
    id: pull.id,
    node_id: nodeId('PullRequest', pull.id),
    ...links,
    number: issue.number,
    state: issue.closedAt ? 'closed' : 'open',
    locked: issue.locked,
    title: issue.title,
    user: userResource(view, issue.user),
    body: issue.body,
    created_at: issue.createdAt,
    updated_at: issue.closedAt ?? issue.createdAt,
    closed_at: issue.closedAt,
    assignee: null,
    assignees: [],
    requested_reviewers: [],
    requested_teams: [],
    labels: [],
    milestone: null,
    head: branch(view, issue.repo, pull.head),
    base: branch(view, issue.repo, pull.base),
    _links: hypermedia(links),
    author_association: association(view, issue.repo, issue.user),
    auto_merge: null,
    active_lock_reason: issue.locked ? 'too heated' : null,
    draft: false,
    ...mergeState(view, pull),
    ...sizes(view, issue),
  }
}

function mergeState(view: View, { merge, mergeable }: Pull) {
  return {
    merged: merge !== undefined,
    merged_at: merge?.mergedAt ?? null,
    merged_by: merge ? userResource(view, merge.user) : null,
    merge_commit_sha: merge?.sha ?? null,
    mergeable: merge ? null : mergeable,
    rebaseable: merge ? null : mergeable,
    mergeable_state: merge ? 'unknown' : mergeable ? 'clean' : 'dirty',
  }
}

function sizes(view: View, { repo, number, commentCount }: Issue) {
  const isOnPull = (comment: { repo: string; issueNumber: number }): boolean =>
    comment.repo === repo && comment.issueNumber === number
  return {
    comments: commentCount,
    review_comments: view.state.reviewComments.filter(isOnPull).length,
    maintainer_can_modify: false,
    commits: 1,
    additions: 1,
    deletions: 1,
    changed_files: 1,
  }
}

function branch(view: View, fullName: string, { ref, sha }: Pull['head']) {
  const repo = repositoryResource(view, fullName)
  return { label: `${repo.owner.login}:${ref}`, ref, sha, user: repo.owner, repo }
}

function pullLinks(view: View, issue: Issue, pull: Pull) {
  const repository = view.repoApi(issue.repo)
  const url = `${repository}/pulls/${issue.number}`
  const html = webUrl(view, issue)
  return {
    url,
    html_url: html,
    diff_url: `${html}.diff`,
    patch_url: `${html}.patch`,
    issue_url: `${repository}/issues/${issue.number}`,
    commits_url: `${url}/commits`,
    review_comments_url: `${url}/comments`,
    review_comment_url: `${repository}/pulls/comments{/number}`,
    comments_url: `${repository}/issues/${issue.number}/comments`,
    statuses_url: `${repository}/statuses/${pull.head.sha}`,
  }
}

function hypermedia(links: ReturnType<typeof pullLinks>) {
  return {
    self: { href: links.url },
    html: { href: links.html_url },
    issue: { href: links.issue_url },
    comments: { href: links.comments_url },
    review_comments: { href: links.review_comments_url },
    review_comment: { href: links.review_comment_url },
    commits: { href: links.commits_url },
    statuses: { href: links.statuses_url },
  }
}
