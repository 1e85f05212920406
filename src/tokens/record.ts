/** Exactly what lies under `token:{userId}`; `expiresAt` is an ISO 8601 instant in UTC. */
export interface TokenRecord {
  readonly accessToken: string
  readonly expiresAt: string
}

/** What a sign-in brings. Instants are milliseconds since 1970-01-01 UTC. */
export interface SignIn {
  readonly accessToken: string
  readonly expiresAt: number
  readonly refreshToken?: string | undefined
  /** Default: the refresh token stays until it is replaced or revoked. */
  readonly refreshExpiresAt?: number | undefined
  /** The provider's origin: the only place the tokens may be sent to. */
  readonly origin: string
}

/** A user who is signed in. */
export interface Holder {
  readonly userId: string
  readonly accessToken: string
  readonly expiresAt: number
  readonly origin: string
}

/** What a token can be renewed with, also when it has ended itself. */
export interface Refreshable {
  readonly refreshToken: string
  /** The provider's origin: the only place the refresh token may be sent to. */
  readonly origin: string
}
