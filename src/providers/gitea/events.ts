import type { EventTable } from '../event-table.js'

/**
 * Gitea's events by the name in `X-Gitea-Event`, and those that Forgejo adds. Every pull request's payload has a `review`,
 * which is null unless it was reviewed. The events of Forgejo's `run` have equal members.
 *
 * @see https://github.com/go-gitea/gitea/blob/main/modules/structs/hook.go
 */
export const EVENTS: EventTable = {
  marks: {
    action_run_failure: ['run', 'prior_status'],
    action_run_recover: ['run', 'prior_status'],
    action_run_success: ['run', 'prior_status'],
    create: ['ref', 'ref_type', 'sha'],
    delete: ['ref', 'ref_type', 'pusher_type', '!sha'],
    fork: ['forkee'],
    issue_comment: ['issue', 'comment'],
    issues: ['issue', '!comment'],
    package: ['package'],
    pull_request: ['pull_request', '!review.type', '!issue', '!workflow_run'],
    pull_request_approved: ['pull_request', 'review.type=pull_request_review_approved'],
    pull_request_comment: ['pull_request', 'review.type=pull_request_review_comment'],
    pull_request_rejected: ['pull_request', 'review.type=pull_request_review_rejected'],
    push: ['ref', 'before', 'after', 'commits'],
    release: ['release'],
    status: ['sha', 'state', 'context'],
    wiki: ['page', 'action'],
    workflow_job: ['workflow_job'],
    workflow_run: ['workflow_run'],
  },
  bare: {
    repository: ['repository', 'action=created|deleted'],
  },
  // "Test delivery" sends a push of the newest commit onto itself (TestWebhook in routers/web/repo/setting/webhook.go).
  repeatable: { push: ['before==after'] },
}
