import { CODE_HOSTS, REFS } from './code-hosts.js'
import { eventTable } from './events.js'
import { EVENT_TABLES } from './event-tables.js'
import { HUB_PROOF } from './table/row.js'
import { GENERIC_DELIVERY, GENERIC_EVENT, type HostScheme } from './scheme.js'

/** Hook id of synthesized deliveries. */
export const HOOK_ID = 1

/** @see https://docs.github.com/webhooks/webhook-events-and-payloads#delivery-headers */
export const GITHUB_WEBHOOK: HostScheme = {
  proofs: [HUB_PROOF],
  event: ['x-github-event', GENERIC_EVENT],
  id: ['x-github-delivery', GENERIC_DELIVERY],
  hook: 'x-github-hook-id',
  content: 'payload',
  formSignature: 'body',
  events: eventTable(EVENT_TABLES.github),
  family: CODE_HOSTS,
  ref: REFS,
  action: ['$.action'],
  repo: ['$.repository.full_name'],
  number: ['$.number', '$.issue.number', '$.pull_request.number'],
  style: () => 'compact',
  // `score` and `percentage` of an advisory, and a project's field of type number (the events' schemas in
  // @octokit/openapi-webhooks-types).
  floats: [
    'cvss.score',
    'cvss_v3.score',
    'cvss_v4.score',
    'epss.percentage',
    'epss.percentile',
    'field_value.from',
    'field_value.to',
  ],
  headers: (event, id) => ({
    Accept: '*/*',
    'Content-Type': 'application/json',
    'User-Agent': 'GitHub-Hookshot/relay',
    'X-GitHub-Delivery': id,
    'X-GitHub-Event': event,
    'X-GitHub-Hook-ID': String(HOOK_ID),
    'X-GitHub-Hook-Installation-Target-ID': '101',
    'X-GitHub-Hook-Installation-Target-Type': 'repository',
  }),
}
