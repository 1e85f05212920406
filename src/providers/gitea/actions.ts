import { eventActions } from '../event-actions.js'

/**
 * Gitea's names, as its header X-Gitea-Event has them, and Forgejo's further ones.
 * @see https://github.com/go-gitea/gitea/blob/main/modules/webhook/type.go
 */
export const ACTIONS = eventActions(`
  action_run_failure:
  action_run_recover:
  action_run_success:
  create:
  delete:
  fork:
  issue_comment: created deleted edited
  issues: assigned closed deleted demilestoned edited label_cleared label_updated milestoned opened reopened unassigned
  package: created deleted
  pull_request: assigned closed demilestoned edited label_cleared label_updated milestoned opened reopened
      review_request_removed review_requested synchronized unassigned
  pull_request_approved: reviewed
  pull_request_comment: reviewed
  pull_request_rejected: reviewed
  push:
  release: deleted published updated
  repository: created deleted
  status:
  schedule:
  wiki: created deleted edited
  workflow_job: completed in_progress queued waiting
  workflow_run: completed in_progress requested
`)
