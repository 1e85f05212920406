import type { Log } from '../base/log.js'
import type { Secret } from '../base/secret.js'
import type { Clock } from '../base/time.js'

/** Lifetimes of the sandbox's tokens in seconds, as in the token response. */
export interface TokenLifetimes {
  readonly access: number
  readonly refresh: number
}

export interface SandboxOptions {
  /** The first OAuth application of the sandbox; registering an App adds another. */
  readonly clientId: string
  readonly clientSecret: Secret
  /** Whether users may sign in by device flow. Default: true; at GitHub an application's owner switches it on. */
  readonly deviceFlow?: boolean | undefined
  /** Receiver of webhooks, and the secret that signs them. Absent: none are sent. */
  readonly webhook?: { readonly url: () => string; readonly secret: Secret } | undefined
  /** Makes access tokens expire and adds refresh tokens. Absent: they do not expire, GitHub's default. */
  readonly lifetimes?: TokenLifetimes | undefined
  /** Milliseconds that the check of a pushed commit takes. Default: 1000. */
  readonly checkDuration?: number | undefined
  readonly log?: Log | undefined
  readonly clock?: Clock | undefined
  /** Default: 0, any free port. */
  readonly port?: number | undefined
}
