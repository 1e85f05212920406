import { CODE_HOSTS, REFS } from './code-hosts.js'
import { eventTable } from './events.js'
import { HUB_PROOF } from './table/row.js'
import { GENERIC_DELIVERY, GENERIC_EVENT, type HostScheme } from './scheme.js'

/**
 * Gitea's events by the name in `X-Gitea-Event`, with those that Forgejo adds. Every pull request's payload has a
 * `review`, which is null unless it was reviewed. The events of Forgejo's `run` have equal members. "Test delivery"
 * sends a push of the newest commit onto itself (TestWebhook in routers/web/repo/setting/webhook.go).
 * @see https://github.com/go-gitea/gitea/blob/main/modules/webhook/type.go and modules/structs/hook.go
 */
const EVENTS = eventTable(`
  action_run_failure: run prior_status |
  action_run_recover: run prior_status |
  action_run_success: run prior_status |
  create: ref ref_type sha |
  delete: ref ref_type pusher_type !sha |
  fork: forkee |
  issue_comment: issue comment | created deleted edited
  issues: issue !comment | assigned closed deleted demilestoned edited label_cleared label_updated
      milestoned opened reopened unassigned
  package: package | created deleted
  pull_request: pull_request !review.type !issue !workflow_run | assigned closed demilestoned edited
      label_cleared label_updated milestoned opened reopened review_request_removed review_requested
      synchronized unassigned
  pull_request_approved: pull_request review.type=pull_request_review_approved | reviewed
  pull_request_comment: pull_request review.type=pull_request_review_comment | reviewed
  pull_request_rejected: pull_request review.type=pull_request_review_rejected | reviewed
  push repeatable(before==after): ref before after commits |
  release: release | deleted published updated
  repository bare: repository action=created|deleted | created deleted
  schedule: |
  status: sha state context |
  wiki: page action | created deleted edited
  workflow_job: workflow_job | completed in_progress queued waiting
  workflow_run: workflow_run | completed in_progress requested
`)

/**
 * Events whose JSON is indented by one space: RepositoryPayload and WikiPayload in Gitea's modules/structs/hook.go,
 * from v1.15 to main. All others are indented by two.
 */
const ONE_SPACE_EVENTS: ReadonlySet<string> = new Set(['repository', 'wiki'])

/** Gitea's scheme. It also sends the header names of GitHub and Gogs. */
export const GITEA_WEBHOOK: HostScheme = {
  proofs: [HUB_PROOF],
  also: [{ ...HUB_PROOF, place: 'x-gitea-signature', prefix: '' }],
  event: ['x-gitea-event', GENERIC_EVENT],
  id: ['x-gitea-delivery', GENERIC_DELIVERY],
  content: 'payload',
  formSignature: 'payload',
  events: EVENTS,
  family: CODE_HOSTS,
  ref: REFS,
  action: ['$.action'],
  // `repository` is the fork, while at GitHub it is the original (services/webhook/notifier.go, ForkRepository).
  repo: ['$.forkee.full_name', '$.repository.full_name'],
  number: ['$.number', '$.issue.number', '$.pull_request.number'],
  style: (event) => (ONE_SPACE_EVENTS.has(event) ? 'one-space-go' : 'indented-go'),
  headers: (event, id) => ({
    'Content-Type': 'application/json',
    'User-Agent': 'Go-http-client/1.1',
    ...Object.fromEntries(
      ['Gitea', 'GitHub', 'Gogs'].flatMap((name) => [
        [`X-${name}-Delivery`, id],
        [`X-${name}-Event`, event],
      ]),
    ),
  }),
}
