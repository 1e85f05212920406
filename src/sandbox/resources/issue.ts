import { nodeId } from './node-id.js'
import type { Comment, Issue } from '../model.js'
import { reactionRollup } from './reaction.js'
import { userResource } from './user.js'
import type { View } from './view.js'

/** Path of an issue or pull request on the web site. */
export function webPath({ repo, number, pull }: Issue): string {
  return `/${repo}/${pull ? 'pull' : 'issues'}/${number}`
}

export function webUrl(view: View, issue: Issue): string {
  return view.web + webPath(issue)
}

/** Issue, or a pull request as an issue (https://docs.github.com/rest/issues/issues). */
export function issueResource(view: View, issue: Issue) {
  const repository = view.repoApi(issue.repo)
  const url = `${repository}/issues/${issue.number}`
  return {
    url,
    repository_url: repository,
    labels_url: `${url}/labels{/name}`,
    comments_url: `${url}/comments`,
    events_url: `${url}/events`,
    html_url: webUrl(view, issue),
    id: issue.id,
    node_id: nodeId('Issue', issue.id),
    number: issue.number,
    title: issue.title,
    user: userResource(view, issue.user),
    labels: [],
    state: issue.closedAt ? 'closed' : 'open',
    locked: issue.locked,
    assignee: null,
    assignees: [],
    milestone: null,
    comments: issue.commentCount,
    created_at: issue.createdAt,
    updated_at: issue.closedAt ?? issue.createdAt,
    closed_at: issue.closedAt,
    author_association: association(view, issue.repo, issue.user),
    active_lock_reason: issue.locked ? 'too heated' : null,
    ...(issue.pull && { draft: false, pull_request: pullLinks(view, issue) }),
    body: issue.body,
    reactions: reactionRollup(view, { kind: 'issue', id: issue.id }, url),
    timeline_url: `${url}/timeline`,
    performed_via_github_app: null,
    state_reason: null,
  }
}

/** Comment on an issue or pull request (https://docs.github.com/rest/issues/comments). */
export function commentResource(view: View, issue: Issue, comment: Comment) {
  const url = `${view.repoApi(issue.repo)}/issues/comments/${comment.id}`
  return {
    url,
    html_url: `${webUrl(view, issue)}#issuecomment-${comment.id}`,
    issue_url: `${view.repoApi(issue.repo)}/issues/${issue.number}`,
    id: comment.id,
    node_id: nodeId('IssueComment', comment.id),
    user: userResource(view, comment.user),
    created_at: comment.createdAt,
    updated_at: comment.updatedAt,
    author_association: association(view, issue.repo, comment.user),
    body: comment.body,
    reactions: reactionRollup(view, { kind: 'comment', id: comment.id }, url),
    performed_via_github_app: null,
  }
}

/** The author's association with the repository. */
export function association(view: View, repo: string, login: string): 'OWNER' | 'CONTRIBUTOR' {
  return view.repo(repo).owner === login ? 'OWNER' : 'CONTRIBUTOR'
}

function pullLinks(view: View, issue: Issue) {
  const html = webUrl(view, issue)
  return {
    url: `${view.repoApi(issue.repo)}/pulls/${issue.number}`,
    html_url: html,
    diff_url: `${html}.diff`,
    patch_url: `${html}.patch`,
    merged_at: issue.pull?.merge?.mergedAt ?? null,
  }
}
