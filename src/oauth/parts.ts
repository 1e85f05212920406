import type { Log } from '../base/log.js'
import type { OAuthClient } from '../base/settings.js'
import type { Clock } from '../base/time.js'
import type { Provider } from '../providers/provider.js'
import type { Store } from '../store/contract.js'
import type { Tokens } from '../tokens/tokens.js'

/** What signing in needs. */
export interface OAuthParts {
  readonly provider: Pick<Provider, 'name' | 'origin' | 'oauth'>
  /** Undefined: nobody can sign in. */
  readonly client: OAuthClient | undefined
  readonly store: Store
  readonly tokens: Pick<Tokens, 'save'>
  /** The callback's public address, as registered at the provider. */
  readonly redirectUri: () => string
  /** How long a token lives when the provider does not say, in milliseconds. */
  readonly tokenTtl: number
  readonly clock: Clock
  readonly fetch: typeof fetch
  /** For the call to the token endpoint, in milliseconds. */
  readonly exchangeTimeout: number
  readonly log: Log
}
