import { HUB_PROOF, hubSignature } from '../hub-signature.js'
import type { WebhookScheme } from '../host.js'
import { EVENTS } from './events.js'

/** The id of the hook that made-up deliveries come from. */
export const HOOK_ID = 1

/** @see https://docs.github.com/webhooks/webhook-events-and-payloads#delivery-headers */
export const WEBHOOK: WebhookScheme = {
  ...HUB_PROOF,
  eventHeader: 'x-github-event',
  idHeaders: ['x-github-delivery'],
  hookHeader: 'x-github-hook-id',
  formSignature: 'body',
  events: EVENTS,
  summary: {
    action: ['action'],
    repo: ['repository.full_name'],
    number: ['number', 'issue.number', 'pull_request.number'],
  },
  style: () => 'compact',
  headers: (event, id, signed, secret) => ({
    Accept: '*/*',
    'Content-Type': 'application/json',
    'User-Agent': 'GitHub-Hookshot/relay',
    'X-GitHub-Delivery': id,
    'X-GitHub-Event': event,
    'X-GitHub-Hook-ID': String(HOOK_ID),
    'X-GitHub-Hook-Installation-Target-ID': '101',
    'X-GitHub-Hook-Installation-Target-Type': 'repository',
    ...(secret && { 'X-Hub-Signature-256': hubSignature(secret, signed) }),
  }),
}
