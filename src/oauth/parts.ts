import type { Log } from '../base/log.js'
import type { LogThrottle } from '../base/log-throttle.js'
import type { OAuthClient } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import type { Provider } from '../providers/provider.js'
import type { Store } from '../store/kv.js'
import type { Tokens } from '../tokens/tokens.js'
import type { TokenFetchOptions } from './token-fetch.js'

/** The parts that a sign-in, or a renewal, works with. */
export interface OAuthParts extends Omit<TokenFetchOptions, 'signal'> {
  readonly provider: Pick<Provider, 'name' | 'origin' | 'oauth'>
  /** Undefined: sign-in is not configured. */
  readonly client: OAuthClient | undefined
  readonly store: Store
  readonly tokens: Pick<Tokens, 'save'>
  /** Public URL of the callback, as registered with the provider. */
  readonly redirectUri: () => string
  /** Lifetime of a token when the provider names none, in milliseconds. */
  readonly tokenTtl: number
  readonly clock: Clock
  readonly log: Log
  /** Rate limiter for log lines that any web page can trigger by opening the callback. */
  readonly throttle: LogThrottle
}
