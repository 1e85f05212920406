import { randomBytes } from 'node:crypto'
import { CODE_HOSTS } from './code-hosts.js'
import { eventTable } from './events.js'
import { EVENT_TABLES } from './event-tables.js'
import { GENERIC_DELIVERY, GENERIC_EVENT, type HostScheme, type Proof } from './scheme.js'
import { standard, token } from './table/row.js'

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
  events: eventTable(EVENT_TABLES.gitlab),
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
