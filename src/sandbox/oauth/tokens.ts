import type { Clock } from '../../base/time.js'
import { BoundedMap } from '../bounded.js'
import type { TokenLifetimes } from '../options.js'
import type { Client } from './clients.js'
import type { Permissions } from './permissions.js'
import { randomSecret } from './secrets.js'

/** Maximum number of valid access tokens; the oldest are removed first. */
const LIMIT = 10_000
/** An hour (https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-an-installation-access-token-for-a-github-app). */
const INSTALLATION_LIFETIME_MS = 3_600_000

/** Account, client and rights of an access token. */
export interface Grant {
  /** Undefined: a personal access token, which the user made without an application. */
  readonly clientId: string | undefined
  readonly login: string
  readonly scopes: readonly string[]
  /** Current rights of a token that has no scopes: a fine-grained personal one, or an App's. */
  readonly permissions: (() => Permissions) | undefined
  /** Full names of the repositories that it is limited to. Undefined: every one. */
  readonly repos?: ReadonlySet<string> | undefined
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

  issue(client: Client, login: string, scopes: readonly string[]): Grant {
    const now = this.#clock()
    const lifetimes = this.#lifetimes
    const { id: clientId, permissions } = client
    const grant = {
      clientId,
      login,
      scopes: permissions ? [] : scopes,
      permissions,
      accessToken: randomSecret(permissions ? 'ghu_' : 'gho_'),
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

  /** Creates a personal access token, which does not expire: a classic one with scopes, or a fine-grained one. */
  issuePersonal(
    login: string,
    rights: { readonly scopes: readonly string[] } | { readonly permissions: Permissions },
  ): Grant {
    const isClassic = 'scopes' in rights
    const grant = {
      clientId: undefined,
      login,
      scopes: isClassic ? rights.scopes : [],
      permissions: isClassic ? undefined : () => rights.permissions,
      accessToken: randomSecret(isClassic ? 'ghp_' : 'github_pat_'),
      expiresAt: Infinity,
      refresh: undefined,
    }
    this.#grants.set(grant.accessToken, grant)
    return grant
  }

  /** Creates a token with which an App acts by itself, as `login`. It is valid for an hour. */
  issueInstallation(
    clientId: string,
    login: string,
    rights: Required<Pick<Grant, 'permissions' | 'repos'>>,
  ): Grant {
    const grant = {
      clientId,
      login,
      scopes: [],
      ...rights,
      accessToken: randomSecret('ghs_'),
      expiresAt: this.#clock() + INSTALLATION_LIFETIME_MS,
      refresh: undefined,
    }
    this.#grants.set(grant.accessToken, grant)
    return grant
  }

  find(accessToken: string): Grant | undefined {
    const grant = this.#grants.get(accessToken)
    return grant && this.#clock() < grant.expiresAt ? grant : undefined
  }

  /** Exchanges a refresh token for a new pair. Like GitHub, it ends the old access token and refresh token. */
  refresh(client: Client, refreshToken: string): Grant | undefined {
    const old = this.#refreshable.get(refreshToken)
    if (!old?.refresh || old.clientId !== client.id || this.#clock() >= old.refresh.expiresAt)
      return undefined
    this.revoke(old)
    return this.issue(client, old.login, old.scopes)
  }

  revoke(grant: Grant): void {
    this.#grants.delete(grant.accessToken)
    if (grant.refresh) this.#refreshable.delete(grant.refresh.token)
  }
}
