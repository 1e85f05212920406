// Webhook schemes by name, without the calls of code hosts.
import type { ProviderName } from '../base/settings.js'
import { GENERIC_DELIVERY, GENERIC_EVENT, type WebhookScheme } from '../schemes/scheme.js'
import { senderScheme } from '../schemes/senders.js'
import { sentEvents } from './events.js'
import { GITEA_WEBHOOK as GITEA } from './gitea/webhook.js'
import { GITHUB_WEBHOOK as GITHUB } from './github/webhook.js'
import type { HostScheme } from './host.js'

const HOSTS: Readonly<Record<ProviderName, HostScheme>> = { github: GITHUB, gitea: GITEA, sandbox: GITHUB }
const BY_NAME: ReadonlyMap<string, HostScheme> = new Map(Object.entries(HOSTS))

/** Scheme for an unknown sender: like GitHub, but with the header names that relay accepts from every code host. */
const OTHER: HostScheme = { ...GITHUB, event: [GENERIC_EVENT], id: [GENERIC_DELIVERY] }

/** Scheme of the code host with this name. */
export function hostScheme(provider: string): HostScheme {
  return BY_NAME.get(provider) ?? OTHER
}

/**
 * Scheme of a code host, or of the sender that the text of a scheme names. A fixture may name any.
 * @throws RelayError `settings` as `senderScheme`
 */
export function schemeOf(scheme: string): WebhookScheme {
  return BY_NAME.get(scheme) ?? senderScheme(scheme) ?? OTHER
}

/** Names of the events that code hosts send. */
export const EVENT_NAMES: readonly string[] = [
  ...new Set([GITHUB, GITEA].flatMap(({ events }) => [...sentEvents(events).keys()])),
]
