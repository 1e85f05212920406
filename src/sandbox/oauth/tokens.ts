import type { Clock } from '../../base/time.js'
import { BoundedMap } from '../bounded.js'
import type { TokenLifetimes } from '../options.js'
import { randomSecret } from './secrets.js'

/** Maximum number of valid access tokens; the oldest are removed first. */
const LIMIT = 10_000

/** Account, client and scopes of an access token. */
export interface Grant {
  readonly clientId: string
  readonly login: string
  readonly scopes: readonly string[]
  readonly accessToken: string
  readonly expiresAt: number
  /** Present when access tokens expire. */
  readonly refresh:
    | { readonly token: string; readonly expiresAt: number; readonly lifetimes: TokenLifetimes }
    | undefined
}

/** Valid access tokens and refresh tokens. */
export class AccessTokens {
  readonly #clock: Clock
  readonly #lifetimes: TokenLifetimes | undefined
  readonly #grants = new BoundedMap<string, Grant>(LIMIT)
  readonly #refreshable = new BoundedMap<string, Grant>(LIMIT)

  constructor(clock: Clock, lifetimes: TokenLifetimes | undefined) {
    this.#clock = clock
    this.#lifetimes = lifetimes
  }

  issue(owner: Pick<Grant, 'clientId' | 'login' | 'scopes'>): Grant {
    const now = this.#clock()
    const lifetimes = this.#lifetimes
    const grant = {
      ...owner,
      accessToken: randomSecret('gho_'),
      expiresAt: lifetimes ? now + lifetimes.access * 1000 : Infinity,
      refresh: lifetimes && {
        token: randomSecret('ghr_'),
        expiresAt: now + lifetimes.refresh * 1000,
        lifetimes,
      },
    }
    this.#grants.set(grant.accessToken, grant)
    if (grant.refresh) this.#refreshable.set(grant.refresh.token, grant)
    return grant
  }

  find(accessToken: string): Grant | undefined {
    const grant = this.#grants.get(accessToken)
    return grant && this.#clock() < grant.expiresAt ? grant : undefined
  }

  /** Exchanges a refresh token for a new pair. Like GitHub, it ends the old access token and refresh token. */
  refresh(clientId: string, refreshToken: string): Grant | undefined {
    const old = this.#refreshable.get(refreshToken)
    if (!old?.refresh || old.clientId !== clientId || this.#clock() >= old.refresh.expiresAt) return undefined
    this.revoke(old)
    return this.issue({ clientId, login: old.login, scopes: old.scopes })
  }

  revoke(grant: Grant): void {
    this.#grants.delete(grant.accessToken)
    if (grant.refresh) this.#refreshable.delete(grant.refresh.token)
  }
}
