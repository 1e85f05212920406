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

export const ON_DUPLICATE = ['if-failed', 'always', 'never'] as const

/** Where deliveries are handed on to, as it was written: `[match=]url`, `[match=]command`, `match`. */
export interface HandOnSettings {
  readonly forward: readonly string[]
  readonly exec: readonly string[]
  readonly ignore: readonly string[]
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
  readonly handOn: HandOnSettings
  /** How many deliveries are handed on to one target at once; 1 keeps their order. */
  readonly concurrency: number
  /** Which targets get a delivery again that came again. */
  readonly onDuplicate: (typeof ON_DUPLICATE)[number]
  /** How long deliveries stay in the journal, in milliseconds. */
  readonly keep: number
  /** What the journal may take in storage, in bytes. */
  readonly keepMax: number
  /** A smee channel to listen on, or a smee server to make one on. Default: none. */
  readonly tunnel?: string | undefined
}

/** 1 MiB: the service's limit for a webhook body. */
export const DEFAULT_MAX_BODY = 1_048_576
/** 25 MiB: GitHub sends nothing larger (docs.github.com, webhook payload cap of 25 MB). */
export const LARGEST_MAX_BODY = 26_214_400
/** 30 days: long enough not to nag, short enough that a forgotten token ends. */
export const DEFAULT_TOKEN_TTL = 30 * 86_400_000
/** 7 days: GitHub lets deliveries be sent again for three, GitHub Enterprise Server for seven. */
export const DEFAULT_KEEP = 7 * 86_400_000
/** 1 GiB: a workstation's disk does not miss it, and it holds a hundred thousand pushes. */
export const DEFAULT_KEEP_MAX = 2 ** 30
export const NO_HAND_ON: HandOnSettings = { forward: [], exec: [], ignore: [] }
/** The public server of smee's makers. */
export const DEFAULT_TUNNEL = 'https://smee.io'
export const DEFAULT_PORT = 8787
export const DEFAULT_SANDBOX_PORT = 8788
