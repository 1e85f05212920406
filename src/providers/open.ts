import { RelayError } from '../base/errors.js'
import type { ProviderName } from '../base/settings.js'
import { parsePrivateAddress } from '../base/web-address.js'
import { sendOnce as sendOverNetwork } from '../net/send-once.js'
import { CODE_HOSTS } from './code-hosts.js'
import type { HostOptions, Provider } from './provider.js'

export interface ProviderOptions extends Partial<Omit<HostOptions, 'url'>> {
  readonly name: ProviderName
  /** The web address; a Gitea's may have a path. */
  readonly url: string
}

/** Long enough for a merge of a large repository, short enough that an HTTP client still waits for our answer. */
const TIME_LIMIT = 25_000

/**
 * The code host of that name at that address. Opens no connection.
 * @throws RelayError `settings` if the address is not absolute, contains credentials, a query or a fragment, or is neither https
 * nor on this machine.
 */
export function createProvider({
  name,
  url,
  sendOnce = sendOverNetwork,
  timeLimit = TIME_LIMIT,
}: ProviderOptions): Provider {
  return CODE_HOSTS[name].open({ url: checked(url), sendOnce, timeLimit })
}

function checked(text: string): URL {
  try {
    return parsePrivateAddress(text)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : ''
    throw new RelayError('settings', `The provider's address ${why}`)
  }
}
