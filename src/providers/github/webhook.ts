import { COMPACT } from '../../json/format.js'
import type { WebhookScheme } from '../provider.js'
import { EVENTS } from './events.js'

/** The id of the hook that made-up deliveries come from. */
export const HOOK_ID = 1

/** @see https://docs.github.com/webhooks/webhook-events-and-payloads#delivery-headers */
export const WEBHOOK: WebhookScheme = {
  eventHeader: 'x-github-event',
  deliveryHeader: 'x-github-delivery',
  hookHeader: 'x-github-hook-id',
  formSignature: 'body',
  digestHeaders: [],
  events: EVENTS,
  forked: 'repository',
  jsonStyle: () => ({ layout: COMPACT }),
  headers: (event, deliveryId) => ({
    Accept: '*/*',
    'Content-Type': 'application/json',
    'User-Agent': 'GitHub-Hookshot/relay',
    'X-GitHub-Delivery': deliveryId,
    'X-GitHub-Event': event,
    'X-GitHub-Hook-ID': String(HOOK_ID),
    'X-GitHub-Hook-Installation-Target-ID': '101',
    'X-GitHub-Hook-Installation-Target-Type': 'repository',
  }),
}
