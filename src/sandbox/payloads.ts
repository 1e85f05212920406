import type { Comment, Issue, Pull } from './model.js'
import { commentResource, issueResource } from './resources/issue.js'
import { pullResource } from './resources/pull.js'
import { repositoryResource } from './resources/repository.js'
import { userResource } from './resources/user.js'
import type { View } from './resources/view.js'
import { DEMO, OWNER } from './seed.js'
import { HOOK_ID } from './webhooks.js'

/** `issue_comment`, action `created` (https://docs.github.com/webhooks/webhook-events-and-payloads#issue_comment). */
export function commentPayload(view: View, issue: Issue, comment: Comment) {
  return {
    action: 'created',
    issue: issueResource(view, issue),
    comment: commentResource(view, issue, comment),
    ...context(view, issue.repo, comment.user),
  }
}

/** `pull_request`, action `closed`, of one that `login` merged. */
export function mergePayload(view: View, issue: Issue, pull: Pull, login: string) {
  return {
    action: 'closed',
    number: issue.number,
    pull_request: pullResource(view, issue, pull),
    ...context(view, issue.repo, login),
  }
}

/** `ping`, which a code host sends when a hook is made. */
export function pingPayload(view: View, hookUrl: string) {
  const url = `${view.repoApi(DEMO)}/hooks/${HOOK_ID}`
  const { createdAt } = view.repo(DEMO)
  return {
    zen: 'Half measures are as bad as nothing at all.',
    hook_id: HOOK_ID,
    hook: {
      type: 'Repository',
      id: HOOK_ID,
      name: 'web',
      active: true,
      events: ['issue_comment', 'pull_request'],
      config: { content_type: 'json', url: hookUrl, insecure_ssl: '0', secret: '********' },
      updated_at: createdAt,
      created_at: createdAt,
      url,
      test_url: `${url}/test`,
      ping_url: `${url}/pings`,
      deliveries_url: `${url}/deliveries`,
      last_response: { code: null, status: 'unused', message: null },
    },
    ...context(view, DEMO, OWNER),
  }
}

function context(view: View, repo: string, sender: string) {
  return { repository: repositoryResource(view, repo), sender: userResource(view, sender) }
}
