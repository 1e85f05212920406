// The events of code hosts, apart from their schemes, which most commands need not load.
import { eventTable, sentEvents } from './events.js'

/** @see https://docs.github.com/webhooks/webhook-events-and-payloads */
const GITHUB = `
  branch_protection_configuration bare: repository action=enabled|disabled | disabled enabled
  branch_protection_rule: rule | created deleted edited
  cache_sync: cache_location
  check_run: check_run !deployment_status | completed created requested_action rerequested
  check_suite: check_suite | completed requested rerequested
  code_scanning_alert: alert.tool | appeared_in_branch closed_by_user created fixed reopened
      reopened_by_user
  commit_comment: comment !issue !pull_request !discussion !workflow_run | created
  content_reference: content_reference
  create: ref ref_type master_branch |
  custom_property: definition | created deleted promote_to_enterprise updated
  custom_property_values: new_property_values | updated
  delete: ref ref_type !master_branch |
  dependabot_alert: alert.security_vulnerability | auto_dismissed auto_reopened created dismissed fixed
      reintroduced reopened
  deploy_key: key | created deleted
  deployment: deployment !deployment_status !deployment_callback_url !workflow_job | created
  deployment_protection_rule: deployment_callback_url | requested
  deployment_review: workflow_run since | approved rejected requested
  deployment_status: deployment_status | created
  discussion: discussion !comment | answered category_changed closed created deleted edited labeled
      locked pinned reopened transferred unanswered unlabeled unlocked unpinned
  discussion_comment: discussion comment | created deleted edited
  enterprise bare: action=anonymous_access_disabled|anonymous_access_enabled !repository
  fork: forkee |
  github_app_authorization bare: action=revoked !repository | revoked
  gollum: pages |
  installation: installation.account action=created|deleted|suspend|unsuspend|new_permissions_accepted
      !repository !repositories_added !account | created deleted new_permissions_accepted suspend
      unsuspend
  installation_repositories: repositories_added repositories_removed | added removed
  installation_target: target_type account | renamed
  issue_comment: issue comment | created deleted edited
  issue_dependencies: blocked_issue_id | blocked_by_added blocked_by_removed blocking_added
      blocking_removed
  issues: issue !comment | assigned closed deleted demilestoned edited labeled locked milestoned opened
      pinned reopened transferred typed unassigned unlabeled unlocked unpinned untyped
  label: label !issue !pull_request !discussion | created deleted edited
  marketplace_purchase: marketplace_purchase | cancelled changed pending_change pending_change_cancelled
      purchased
  member repeatable: member !team | added edited removed
  membership repeatable: member team | added removed
  merge_group: merge_group | checks_requested destroyed
  meta: hook hook_id !zen | deleted
  milestone: milestone !issue !pull_request | closed created deleted edited opened
  org_block repeatable: blocked_user | blocked unblocked
  organization repeatable: organization
      action=deleted|member_added|member_invited|member_removed|renamed !repository !projects_v2
      !projects_v2_item !projects_v2_status_update !team | deleted member_added member_invited
      member_removed renamed
  package: package | published updated
  page_build: build |
  personal_access_token_request: personal_access_token_request | approved cancelled created denied
  ping repeatable: hook hook_id zen |
  project: project | closed created deleted edited reopened
  project_card: project_card | converted created deleted edited moved
  project_column: project_column | created deleted edited moved
  projects_v2: projects_v2 | closed created deleted edited reopened
  projects_v2_item: projects_v2_item | archived converted created deleted edited reordered restored
  projects_v2_status_update: projects_v2_status_update | created deleted edited
  public bare: repository !action |
  pull_request: pull_request !review !comment !thread !issue | assigned auto_merge_disabled
      auto_merge_enabled closed converted_to_draft demilestoned dequeued edited enqueued labeled locked
      milestoned opened ready_for_review reopened review_request_removed review_requested synchronize
      unassigned unlabeled unlocked
  pull_request_review: pull_request review | dismissed edited submitted
  pull_request_review_comment: pull_request comment !issue | created deleted edited
  pull_request_review_thread: pull_request thread | resolved unresolved
  push: ref before after commits |
  registry_package: registry_package | published updated
  release: release | created deleted edited prereleased published released unpublished
  repository bare: repository
      action=archived|created|deleted|edited|privatized|publicized|renamed|transferred|unarchived|anonymous_access_disabled|anonymous_access_enabled
      | archived created deleted edited privatized publicized renamed transferred unarchived
  repository_advisory: repository_advisory | published reported
  repository_dispatch repeatable: branch client_payload | *
  repository_import: status repository !action |
  repository_ruleset: repository_ruleset | created deleted edited
  repository_vulnerability_alert: alert.affected_package_name | create dismiss reopen resolve
  secret_scanning_alert: alert.secret_type !location | assigned created publicly_leaked reopened
      resolved unassigned validated
  secret_scanning_alert_location: alert location | created
  secret_scanning_scan: secret_types | completed
  security_advisory: security_advisory | published updated withdrawn
  security_and_analysis: changes.from.security_and_analysis |
  sponsorship: sponsorship | cancelled created edited pending_cancellation pending_tier_change
      tier_changed
  star: starred_at | created deleted
  status: sha state context |
  sub_issues: sub_issue_id | parent_issue_added parent_issue_removed sub_issue_added sub_issue_removed
  team repeatable: team action !member | added_to_repository created deleted edited
      removed_from_repository
  team_add repeatable: team !action |
  user: user action=created|deleted !repository !organization
  watch bare: repository action=started | started
  workflow_dispatch repeatable: inputs workflow |
  workflow_job: workflow_job | completed in_progress queued waiting
  workflow_run: workflow_run workflow !deployment !since | completed in_progress requested
`

/**
 * Gitea's events by the name in `X-Gitea-Event`, with those that Forgejo adds. Every pull request's payload has a
 * `review`, which is null unless it was reviewed. The events of Forgejo's `run` have equal members. "Test delivery"
 * sends a push of the newest commit onto itself (TestWebhook in routers/web/repo/setting/webhook.go).
 * @see https://github.com/go-gitea/gitea/blob/main/modules/webhook/type.go and modules/structs/hook.go
 */
const GITEA = `
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
`

/**
 * Events by the name of their trigger, which is the header's in lower case without `Hook`: `Merge Request Hook` is
 * `merge_request` (`hook_to_event` in app/services/web_hook_service.rb). Work items come as issues. Hooks of projects get no
 * events of members, subgroups and projects.
 * @see https://docs.gitlab.com/user/project/integrations/webhook_events/, and `object_kind` in GitLab's
 * lib/gitlab/data_builder and lib/gitlab/hook_data
 */
const GITLAB = `
  confidential_issue: object_kind=issue|work_item event_type=confidential_issue|confidential_work_item
      | close open reopen update
  confidential_note: object_kind=note event_type=confidential_note | create update
  deployment: object_kind=deployment |
  emoji: object_kind=emoji | award revoke
  feature_flag: object_kind=feature_flag |
  issue: object_kind=issue|work_item event_type=issue|work_item | close open reopen update
  job: object_kind=build |
  member: event_name=user_add_to_team|user_update_for_team|user_remove_from_team|user_add_to_group|user_update_for_group|user_remove_from_group|user_access_request_to_group|user_access_request_denied_for_group
  merge_request: object_kind=merge_request | approval approved close merge open reopen unapproval
      unapproved update
  milestone: object_kind=milestone | close create delete reopen
  note: object_kind=note event_type=note | create update
  pipeline: object_kind=pipeline |
  project: event_name=project_create|project_destroy
  push: object_kind=push |
  release: object_kind=release | create delete update
  resource_access_token: object_kind=access_token |
  resource_deploy_token: object_kind=deploy_token |
  subgroup: event_name=subgroup_create|subgroup_destroy
  tag_push: object_kind=tag_push |
  vulnerability: object_kind=vulnerability |
  wiki_page: object_kind=wiki_page | create delete update
`

/** Tables of events for {@link eventTable}. */
export const EVENT_TABLES = { github: GITHUB, gitea: GITEA, gitlab: GITLAB } as const

let names: readonly string[] | undefined

/** Names of the events that code hosts send. The tables are read when a route first asks. */
export function hostEventNames(): readonly string[] {
  return (names ??= readNames())
}

function readNames(): readonly string[] {
  const tables = Object.values(EVENT_TABLES).map((text) => sentEvents(eventTable(text)))
  return [...new Set(tables.flatMap((table) => [...table.keys()]))]
}
