import { RelayError, isError } from '../base/errors.js'
import { TIME_LIMITS } from '../base/seams.js'
import type { ProviderName } from '../base/settings.js'
import { hostSource } from '../base/source-names.js'
import { parsePrivateAddress } from '../base/address.js'
import { sendOnce as sendOverNetwork } from '../net/client.js'
import { GITEA } from './gitea/gitea.js'
import { GITHUB, SANDBOX } from './github/github.js'
import { GITLAB } from './gitlab/gitlab.js'
import type { CallingOptions, CodeHost, HostKind, HostLimits } from './host.js'

/** Every kind of code host that relay works with. */
export const HOST_KINDS: Readonly<Record<ProviderName, HostKind>> = {
  github: GITHUB,
  gitea: GITEA,
  gitlab: GITLAB,
  sandbox: SANDBOX,
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
export function openHost({
  name,
  url,
  sendOnce = sendOverNetwork,
  limits,
  refusal,
}: OpenHostOptions): CodeHost {
  let checked: URL
  try {
    checked = parsePrivateAddress(url)
  } catch (cause) {
    throw new RelayError('settings', `The provider's address ${isError(cause) ? cause.message : ''}`)
  }
  return {
    ...HOST_KINDS[name].open(checked, { sendOnce, refusal, limits: { ...TIME_LIMITS, ...limits } }),
    source: hostSource(name),
    refusal,
  }
}
