import { CODE_HOSTS, REFS } from './code-hosts.js'
import { eventTable } from './events.js'
import { EVENT_TABLES } from './event-tables.js'
import { HUB_PROOF } from './table/row.js'
import { GENERIC_DELIVERY, GENERIC_EVENT, type HostScheme } from './scheme.js'

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
  events: eventTable(EVENT_TABLES.gitea),
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
