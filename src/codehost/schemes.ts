// What is known of deliveries, without the calls.
import type { ProviderName } from '../base/settings.js'
import { GENERIC_DELIVERY, GENERIC_EVENT, type WebhookScheme } from '../schemes/scheme.js'
import { senderScheme } from '../schemes/senders.js'
import { sentEvents } from './events.js'
import { WEBHOOK as GITEA } from './gitea/webhook.js'
import { WEBHOOK as GITHUB } from './github/webhook.js'
import type { HostScheme } from './host.js'

const HOSTS: Readonly<Record<ProviderName, HostScheme>> = { github: GITHUB, gitea: GITEA, sandbox: GITHUB }
const BY_NAME: ReadonlyMap<string, HostScheme> = new Map(Object.entries(HOSTS))

/** An unknown sender: like GitHub, but with the header names that relay accepts from every code host. */
const OTHER: HostScheme = { ...GITHUB, event: [GENERIC_EVENT], id: [GENERIC_DELIVERY] }

/** How the code host of this name writes and signs a delivery, and what it sends. */
export function hostScheme(provider: string): HostScheme {
  return BY_NAME.get(provider) ?? OTHER
}

/**
 * How a delivery is written and signed: by a code host, or by the sender that the text of a scheme names. A fixture may name any.
 * @throws RelayError `settings` as `senderScheme`
 */
export function schemeOf(scheme: string): WebhookScheme {
  return BY_NAME.get(scheme) ?? senderScheme(scheme) ?? OTHER
}

/** The names of the events that code hosts send. */
export const EVENT_NAMES: readonly string[] = [
  ...new Set([GITHUB, GITEA].flatMap(({ events }) => [...sentEvents(events).keys()])),
]
