import type { Secret } from './secret.js'

export const PROVIDER_NAMES = ['github', 'gitea', 'sandbox'] as const
export type ProviderName = (typeof PROVIDER_NAMES)[number]

export const STORE_KINDS = ['file', 'keychain', 'memory'] as const
export type StoreKind = (typeof STORE_KINDS)[number]

/** The secrets a delivery's signature may be made with: the current one and, while rotating, the one before. */
export interface WebhookSecrets {
  readonly current: Secret
  readonly previous?: Secret | undefined
}

/** The OAuth application registered at the provider. */
export interface OAuthClient {
  readonly id: string
  readonly secret: Secret
}

/** Everything that decides how a relay behaves, checked and complete. Only `cli/settings.ts` reads the environment. */
export interface Settings {
  readonly profile: string
  /** The profile's own folder; nothing is written elsewhere. Unused by the memory store. */
  readonly folder: string
  readonly provider: ProviderName
  /** The provider's web address without a trailing slash, e.g. `https://github.com`. */
  readonly providerUrl: string
  readonly oauthClient?: OAuthClient | undefined
  readonly webhookSecrets: WebhookSecrets
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  /** Names besides the loopback ones that a request's Host header may carry. */
  readonly allowedHosts: readonly string[]
  /** Where this service is reached from outside; makes the redirect URI. Default: the address it listens on. */
  readonly publicUrl?: string | undefined
  /** The application a browser returns to after signing in. Default: the public address. */
  readonly baseUrl?: string | undefined
  readonly store: StoreKind
  /** Largest accepted webhook body, in bytes. */
  readonly maxBody: number
  /** How long a token lives when the provider does not say, in milliseconds. */
  readonly tokenTtl: number
}

/** 1 MiB: the service's limit for a webhook body. */
export const DEFAULT_MAX_BODY = 1_048_576
/** 25 MiB: GitHub sends nothing larger (docs.github.com, webhook payload cap of 25 MB). */
export const LARGEST_MAX_BODY = 26_214_400
/** 30 days: long enough not to nag, short enough that a forgotten token ends. */
export const DEFAULT_TOKEN_TTL = 30 * 86_400_000
export const DEFAULT_PORT = 8787
export const DEFAULT_SANDBOX_PORT = 8788
