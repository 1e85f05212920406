import { RelayError } from '../base/errors.js'
import { isLoopback } from '../base/loopback.js'
import type { ProviderName } from '../base/settings.js'
import { outboundCall, type SendOnce } from './fetch.js'
import { createGitea } from './gitea.js'
import { createGitHub } from './github.js'
import type { Provider } from './provider.js'

export interface ProviderOptions {
  readonly name: ProviderName
  /** The web address; a Gitea may live under a path. */
  readonly url: string
  readonly fetch?: SendOnce
  /** Milliseconds for one call, headers and body together. */
  readonly timeLimit?: number
}

/** Long enough for a merge of a large repository, short enough that an HTTP client still waits for our answer. */
const TIME_LIMIT = 25_000

/**
 * The code host of that name at that address. Opens no connection.
 * @throws RelayError `settings`: the address is not absolute, carries credentials, a query or a fragment, or is
 * not https and not this machine.
 */
export function createProvider({
  name,
  url,
  fetch = outboundCall,
  timeLimit = TIME_LIMIT,
}: ProviderOptions): Provider {
  const options = { name, url: checked(url), fetch, timeLimit }
  return name === 'gitea' ? createGitea(options) : createGitHub(options)
}

function checked(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  // The address itself is not repeated: it may hold a password.
  if (!url || !/^https?:$/.test(url.protocol)) throw refused('must be an absolute https address')
  if (url.username || url.password) throw refused('must not carry a user name or password')
  if (url.search || url.hash) throw refused('must not carry a query or fragment')
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    throw refused('must be https, unless it is on this machine')
  return url
}

function refused(why: string): RelayError {
  return new RelayError('settings', `The provider's address ${why}`)
}
