import type { Log } from '../base/log.js'
import type { Secret } from '../base/secret.js'
import type { Clock } from '../base/time.js'

/** How the sandbox's OAuth app lets its tokens end: both lengths in seconds, as the token answer gives them. */
export interface TokenLifetimes {
  readonly access: number
  readonly refresh: number
}

export interface SandboxOptions {
  /** The one OAuth app the sandbox knows. */
  readonly clientId: string
  readonly clientSecret: Secret
  /** Where what happens here is told, and the secret the deliveries are signed with. Absent: nothing is sent. */
  readonly webhook?: { readonly url: () => string; readonly secret: Secret } | undefined
  /** Makes access tokens expire and come with a refresh token. Absent: they last, as GitHub's do by default. */
  readonly lifetimes?: TokenLifetimes | undefined
  readonly log?: Log | undefined
  readonly clock?: Clock | undefined
  /** 0, the default, takes any free port. */
  readonly port?: number | undefined
}
