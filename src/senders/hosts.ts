import { randomBytes } from 'node:crypto'
import { Secret } from '../base/secret.js'
import type { ProviderName } from '../base/settings.js'
import { hostSource } from '../base/source-names.js'
import { GITEA_WEBHOOK as GITEA } from './gitea.js'
import { GITHUB_WEBHOOK as GITHUB } from './github.js'
import { GITLAB_WEBHOOK as GITLAB } from './gitlab.js'
import { type EventTable, GENERIC_DELIVERY, GENERIC_EVENT, type HostScheme } from './scheme.js'

// Schemes of the code hosts, apart from the other senders, which most commands need not load.

const HOSTS: Readonly<Record<ProviderName, HostScheme>> = {
  github: GITHUB,
  gitea: GITEA,
  gitlab: GITLAB,
  sandbox: GITHUB,
}
const BY_NAME: ReadonlyMap<string, HostScheme> = new Map(
  Object.entries(HOSTS).map(([name, scheme]) => [hostSource(name), scheme]),
)

/** Scheme of the code host whose source has this name. Undefined for any other name. */
export function hostScheme(source: string): HostScheme | undefined {
  return BY_NAME.get(source)
}

/** Scheme for an unknown sender: like GitHub, but with the header names that relay accepts from every code host. */
export const OTHER_HOST: HostScheme = { ...GITHUB, event: [GENERIC_EVENT], id: [GENERIC_DELIVERY] }

/** Events of the code host with this name, or of its source. */
export function hostEvents(provider: string): EventTable {
  return (BY_NAME.get(hostSource(provider)) ?? OTHER_HOST).events
}

/** Makes a webhook secret for the code host with this name. */
export function newHostSecret(provider: string): Secret {
  const { newSecret } = BY_NAME.get(hostSource(provider)) ?? OTHER_HOST
  return new Secret(newSecret?.() ?? randomBytes(32).toString('hex'))
}
