import type { Comment, Issue, Pull } from './model.js'
import { commentResource, issueResource } from './resources/issue.js'
import { pullResource } from './resources/pull.js'
import { repositoryResource } from './resources/repository.js'
import { userResource } from './resources/user.js'
import type { View } from './resources/view.js'

/** Payload of `issue_comment`, action `created` (https://docs.github.com/webhooks/webhook-events-and-payloads#issue_comment). */
export function commentPayload(view: View, issue: Issue, comment: Comment) {
  return {
    action: 'created',
    issue: issueResource(view, issue),
    comment: commentResource(view, issue, comment),
    ...context(view, issue.repo, comment.user),
  }
}

/** Payload of `pull_request`, action `closed`, for a pull request that `login` merged. */
export function mergePayload(view: View, issue: Issue, pull: Pull, login: string) {
  return {
    action: 'closed',
    number: issue.number,
    pull_request: pullResource(view, issue, pull),
    ...context(view, issue.repo, login),
  }
}

/** Last fields of every payload. */
export function context(view: View, repo: string, sender: string) {
  return { repository: repositoryResource(view, repo), sender: userResource(view, sender) }
}
