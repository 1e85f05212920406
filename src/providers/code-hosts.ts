import type { ProviderName } from '../base/settings.js'
import { GITEA } from './gitea/gitea.js'
import { GITHUB, SANDBOX } from './github/github.js'
import { type CodeHost, GENERIC_DELIVERY, GENERIC_EVENT } from './provider.js'

/** Every kind of code host that relay works with. */
export const CODE_HOSTS: Readonly<Record<ProviderName, CodeHost>> = {
  github: GITHUB,
  gitea: GITEA,
  sandbox: SANDBOX,
}

/** An unknown kind: like GitHub, but with the header names that relay accepts from every code host. */
const OTHER: CodeHost = {
  ...GITHUB,
  webhook: { ...GITHUB.webhook, eventHeader: GENERIC_EVENT, deliveryHeader: GENERIC_DELIVERY },
}

const BY_NAME: ReadonlyMap<string, CodeHost> = new Map(Object.entries(CODE_HOSTS))

/** The kind of code host that a delivery names. A fixture may contain any name. */
export function codeHostOf(provider: string): CodeHost {
  return BY_NAME.get(provider) ?? OTHER
}
