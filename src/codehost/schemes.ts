// What is known of deliveries, without the calls.
import type { ProviderName } from '../base/settings.js'
import { sentEvents } from './events.js'
import { WEBHOOK as GITEA } from './gitea/webhook.js'
import { WEBHOOK as GITHUB } from './github/webhook.js'
import { GENERIC_DELIVERY, GENERIC_EVENT, type WebhookScheme } from './host.js'

const SCHEMES: Readonly<Record<ProviderName, WebhookScheme>> = {
  github: GITHUB,
  gitea: GITEA,
  sandbox: GITHUB,
}
const BY_NAME: ReadonlyMap<string, WebhookScheme> = new Map(Object.entries(SCHEMES))

/** An unknown sender: like GitHub, but with the header names that relay accepts from every code host. */
const OTHER: WebhookScheme = { ...GITHUB, eventHeader: GENERIC_EVENT, idHeaders: [GENERIC_DELIVERY] }

/** How a delivery of this provider is written and signed. A fixture may name any. */
export function schemeOf(provider: string): WebhookScheme {
  return BY_NAME.get(provider) ?? OTHER
}

/** The names of the events that code hosts send. */
export const EVENT_NAMES: readonly string[] = [
  ...new Set([GITHUB, GITEA].flatMap(({ events }) => [...sentEvents(events).keys()])),
]
