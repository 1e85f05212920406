import type { Clock } from '../../base/time.js'
import { BoundedMap } from '../bounded.js'
import type { TokenLifetimes } from '../options.js'
import { unguessable } from './random.js'

/** Access tokens alive at once; the oldest go first. */
const LIMIT = 10_000

/** What an access token stands for. */
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

/** The access tokens that work, and the refresh tokens that make new ones. */
export class AccessTokens {
  readonly #clock: Clock
  readonly #lifetimes: TokenLifetimes | undefined
  readonly #grants = new BoundedMap<string, Grant>(LIMIT)
  readonly #refreshable = new BoundedMap<string, Grant>(LIMIT)

  constructor(clock: Clock, lifetimes: TokenLifetimes | undefined) {
    this.#clock = clock
    this.#lifetimes = lifetimes
  }

  issue(holder: Pick<Grant, 'clientId' | 'login' | 'scopes'>): Grant {
    const now = this.#clock()
    const lifetimes = this.#lifetimes
    const grant = {
      ...holder,
      accessToken: unguessable('gho_'),
      expiresAt: lifetimes ? now + lifetimes.access * 1000 : Infinity,
      refresh: lifetimes && {
        token: unguessable('ghr_'),
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

  /** A new pair for a refresh token; the old access token and the old refresh token die, as at GitHub. */
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
