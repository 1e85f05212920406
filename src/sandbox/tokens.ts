import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../base/time.js'
import { BoundedMap } from './state.js'

/** Application that users can authorize. */
export interface RegisteredClient {
  readonly id: string
  readonly secret: string
  /** Allows sign-in by device flow, which is a setting of the application. */
  readonly deviceFlow: boolean
  /** True for an App, whose users' tokens have permissions instead of scopes. */
  readonly isApp: boolean
}

/** Lifetimes of tokens in seconds, as in the token response. */
export interface TokenLifetimes {
  readonly access: number
  readonly refresh: number
}

/** Fields of a response. */
export type Fields = Readonly<Record<string, string | number>>

/** An access token of the user, with its client and scopes. */
export interface Grant {
  readonly accessToken: string
  /** Undefined for a personal access token, which the user made without an application. */
  readonly clientId: string | undefined
  /**
   * Undefined for a token with permissions instead, an App's or a fine-grained one. Reported only: any token may do
   * everything.
   */
  readonly scopes: readonly string[] | undefined
  /** Milliseconds since 1970-01-01 UTC. */
  readonly expiresAt: number
  /** Present when access tokens expire. */
  readonly refresh: { readonly token: string; readonly expiresAt: number } | undefined
}

/** Maximum number of valid tokens of a kind, and of one-time values; the oldest are removed first. */
const TOKEN_LIMIT = 10_000
const WAITING_LIMIT = 1000

/** Random string of 160 bits, as hex digits after `prefix`. */
export function randomSecret(prefix = ''): string {
  return prefix + randomBytes(20).toString('hex')
}

/** Values under random keys, such as the anti-forgery tokens of forms. Each can be redeemed once, within a lifetime. */
export class OneTimeValues<T> {
  readonly #clock: Clock
  readonly #lifetimeMs: number
  readonly #entries = new BoundedMap<string, { value: T; until: number }>(WAITING_LIMIT)

  constructor(clock: Clock, lifetimeMs: number) {
    this.#clock = clock
    this.#lifetimeMs = lifetimeMs
  }

  /** Stores a value and returns its key. */
  put(value: T): string {
    const key = randomSecret()
    this.#entries.set(key, { value, until: this.#clock() + this.#lifetimeMs })
    return key
  }

  redeem(key: string | null): T | undefined {
    const entry = this.#entries.get(key ?? '')
    this.#entries.delete(key ?? '')
    return entry && this.#clock() < entry.until ? entry.value : undefined
  }
}

/** Applications, and the tokens that users granted them or made themselves. */
export class OAuth {
  readonly #clock: Clock
  readonly #lifetimes: TokenLifetimes | undefined
  readonly #clients = new Map<string, RegisteredClient>()
  readonly #grants = new BoundedMap<string, Grant>(TOKEN_LIMIT)
  readonly #refreshable = new BoundedMap<string, Grant>(TOKEN_LIMIT)

  constructor(clock: Clock, lifetimes: TokenLifetimes | undefined) {
    this.#clock = clock
    this.#lifetimes = lifetimes
  }

  addClient(client: RegisteredClient): void {
    this.#clients.set(client.id, client)
  }

  client(id: string | null): RegisteredClient | undefined {
    return this.#clients.get(id ?? '')
  }

  /** Finds the application with this id and secret. Takes as long for any secret. */
  authenticate(id: string | null, secret: string | null): RegisteredClient | undefined {
    const client = this.client(id)
    const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
    return client && timingSafeEqual(digest(secret ?? ''), digest(client.secret)) ? client : undefined
  }

  /** Issues an access token. Returns the fields of the token response. */
  issue(client: RegisteredClient, scopes: readonly string[]): Fields {
    const now = this.#clock()
    const lifetimes = this.#lifetimes
    const grant = {
      clientId: client.id,
      scopes: client.isApp ? undefined : scopes,
      accessToken: randomSecret(client.isApp ? 'ghu_' : 'gho_'),
      expiresAt: lifetimes ? now + lifetimes.access * 1000 : Infinity,
      refresh: lifetimes && { token: randomSecret('ghr_'), expiresAt: now + lifetimes.refresh * 1000 },
    }
    const { accessToken: access_token, refresh } = grant
    this.#grants.set(access_token, grant)
    const response = { access_token, scope: (grant.scopes ?? []).join(','), token_type: 'bearer' }
    if (!refresh || !lifetimes) return response
    this.#refreshable.set(refresh.token, grant)
    return {
      ...response,
      expires_in: lifetimes.access,
      refresh_token: refresh.token,
      refresh_token_expires_in: lifetimes.refresh,
    }
  }

  /** Creates a personal access token, which does not expire: a classic one with scopes, or a fine-grained one. */
  issuePersonal(scopes: readonly string[] | undefined): string {
    const accessToken = randomSecret(scopes ? 'ghp_' : 'github_pat_')
    const unlimited = { clientId: undefined, expiresAt: Infinity, refresh: undefined }
    this.#grants.set(accessToken, { accessToken, scopes, ...unlimited })
    return accessToken
  }

  find(accessToken: string): Grant | undefined {
    const grant = this.#grants.get(accessToken)
    return grant && this.#clock() < grant.expiresAt ? grant : undefined
  }

  /** Exchanges a refresh token for a new pair. Like GitHub, it ends the old access token and refresh token. */
  refresh(client: RegisteredClient, refreshToken: string | null): Fields | undefined {
    const old = this.#refreshable.get(refreshToken ?? '')
    if (!old?.refresh || old.clientId !== client.id || this.#clock() >= old.refresh.expiresAt)
      return undefined
    this.revoke(old)
    return this.issue(client, old.scopes ?? [])
  }

  revoke(grant: Grant): void {
    this.#grants.delete(grant.accessToken)
    if (grant.refresh) this.#refreshable.delete(grant.refresh.token)
  }
}
