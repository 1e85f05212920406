import { RelayError, isError } from '../base/errors.js'
import { TIME_LIMITS } from '../base/seams.js'
import type { ProviderName } from '../base/settings.js'
import { hostSource } from '../base/source-names.js'
import { parsePrivateAddress } from '../base/address.js'
import { sendOnce as sendOverNetwork } from '../net/client.js'
import type { CallingOptions, CodeHost, HostKind, HostLimits } from './host.js'

/** Every kind of code host that relay works with. Each is loaded when it is used: a relay works with one. */
const KINDS: Readonly<Record<ProviderName, () => Promise<HostKind>>> = {
  github: async () => (await import('./github/github.js')).GITHUB,
  gitea: async () => (await import('./gitea/gitea.js')).GITEA,
  gitlab: async () => (await import('./gitlab/gitlab.js')).GITLAB,
  sandbox: async () => (await import('./github/github.js')).SANDBOX,
}

/** Loads what relay knows of a kind of code host. */
export async function hostKind(name: ProviderName): Promise<HostKind> {
  return KINDS[name]()
}

export interface OpenHostOptions extends Partial<Omit<CallingOptions, 'limits'>> {
  /** Replaces time limits. */
  readonly limits?: Partial<HostLimits> | undefined
  readonly name: ProviderName
  /** Web address. That of a Gitea may have a path. */
  readonly url: string
}

/**
 * Opens the code host with this name at this address, without a connection.
 * @throws RelayError `settings` if the address is not absolute, contains credentials, a query or a fragment, or is
 * neither https nor on this machine
 */
export async function openHost({
  name,
  url,
  sendOnce = sendOverNetwork,
  limits,
  refusal,
}: OpenHostOptions): Promise<CodeHost> {
  let checked: URL
  try {
    checked = parsePrivateAddress(url)
  } catch (cause) {
    throw new RelayError('settings', `The provider's address ${isError(cause) ? cause.message : ''}`)
  }
  const { open } = await hostKind(name)
  return {
    ...open(checked, { sendOnce, refusal, limits: { ...TIME_LIMITS, ...limits } }),
    source: hostSource(name),
    refusal,
  }
}
