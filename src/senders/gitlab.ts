import { randomBytes } from 'node:crypto'
import { CODE_HOSTS } from './code-hosts.js'
import { eventTable } from './events.js'
import { GENERIC_DELIVERY, GENERIC_EVENT, type HostScheme, type Proof } from './scheme.js'
import { standard, token } from './table/row.js'

/**
 * Events by the name of their trigger, which is the header's in lower case without `Hook`: `Merge Request Hook` is
 * `merge_request` (`hook_to_event` in app/services/web_hook_service.rb). Work items come as issues. Hooks of projects get no
 * events of members, subgroups and projects.
 * @see https://docs.gitlab.com/user/project/integrations/webhook_events/, and `object_kind` in GitLab's
 * lib/gitlab/data_builder and lib/gitlab/hook_data
 */
const EVENTS = eventTable(`
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
`)

/**
 * With a signing token (19.0), GitLab signs as in Standard Webhooks. A secret token is sent unchanged in each request.
 * @see https://docs.gitlab.com/user/project/integrations/webhooks/
 */
export const GITLAB_PROOFS: readonly Proof[] = [
  { ...standard('webhook'), secretForm: /^whsec_/ },
  { ...token('x-gitlab-token'), secretForm: /^(?!whsec_)/ },
]

/** Ids that stay the same in a repeated delivery. `X-Gitlab-Webhook-UUID` differs for each request. */
export const GITLAB_IDS = ['webhook-id', 'idempotency-key'] as const

/** GitLab as a code host, from 17.4 on. */
export const GITLAB_WEBHOOK: HostScheme = {
  proofs: GITLAB_PROOFS,
  event: ['x-gitlab-event', GENERIC_EVENT],
  eventName: {
    read: (text) =>
      text
        .replace(/ Hook$/, '')
        .replaceAll(' ', '_')
        .toLowerCase(),
    write: (name) =>
      `${name.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => ` ${letter.toUpperCase()}`).trim()} Hook`,
  },
  id: [...GITLAB_IDS, GENERIC_DELIVERY],
  made: ['x-gitlab-event-uuid', 'x-gitlab-webhook-uuid'],
  content: 'json',
  formSignature: 'body',
  events: EVENTS,
  family: { ...CODE_HOSTS, id: /^(?:webhook-id|idempotency-key|x-provider-delivery)$/i },
  waits: 10_000,
  // A signing token.
  newSecret: () => `whsec_${randomBytes(32).toString('base64')}`,
  ref: ['$.ref', '$.object_attributes.ref', '$.tag'],
  action: ['$.object_attributes.action', '$.action'],
  repo: ['$.project.path_with_namespace', '$.project_path'],
  // Pipelines and milestones have an `iid`, too, but are not known by it.
  number: [
    { place: '$.merge_request.iid', kind: 'pull' },
    { place: '$.issue.iid', kind: 'issue' },
    { place: '$.object_attributes.iid', kind: 'pull', mark: 'object_kind=merge_request' },
    { place: '$.object_attributes.iid', kind: 'issue', mark: 'object_kind=issue|work_item' },
  ],
  secretHint: 'each webhook has its own signing token or secret token',
  style: () => 'compact',
  headers: (event, id) => ({
    'Content-Type': 'application/json',
    'User-Agent': 'GitLab/19.1.0',
    'Idempotency-Key': id,
    'X-Gitlab-Event': GITLAB_WEBHOOK.eventName?.write(event) ?? event,
    'X-Gitlab-Webhook-UUID': id,
    'X-Gitlab-Instance': 'https://gitlab.example.com',
    'X-Gitlab-Event-UUID': id,
    'Webhook-ID': id,
  }),
}
