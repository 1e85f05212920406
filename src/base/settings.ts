import { DEFAULT_PROFILE } from './command-line.js'
import { RelayError } from './errors.js'
import { isCodeHost, PROVIDER_NAMES, type ProviderName } from './providers.js'
import type { Secret } from './secret.js'
import type { SharedAddress, SharedStore } from './shared-store.js'

export { isCodeHost, PROVIDER_NAMES, type ProviderName }

export const STORE_KINDS = ['file', 'keychain', 'memory'] as const
export type StoreKind = (typeof STORE_KINDS)[number]
/** Location of a profile's data: this machine, or a database that several relays share. */
export type StorePlace = StoreKind | SharedStore
/** A {@link StorePlace} as written in the settings, without a password. */
export type StoreText = StoreKind | SharedAddress

/** Secrets that may have signed a delivery: the current one and, during a rotation, the previous one. */
export interface WebhookSecrets {
  readonly current: Secret
  readonly previous?: Secret | undefined
}

/** OAuth application registered at the provider. */
export interface OAuthClient {
  readonly id: string
  readonly secret: Secret
}

export const ON_DUPLICATE = ['if-failed', 'always', 'never'] as const

/** Forwarding rules as written in the settings: `[name=][match=]url`, `[name=][match=]command`, `match`. */
export interface RouteSettings {
  readonly forward: readonly string[]
  readonly exec: readonly string[]
  readonly ignore: readonly string[]
}

/** A sender of deliveries other than the code host. */
export interface SourceSettings {
  readonly name: string
  /** Scheme as written: `stripe`, or `hmac header=X-Signature`. */
  readonly scheme: string
  /** Signing secrets. The secret of a scheme without proof is empty. */
  readonly secrets: WebhookSecrets
}

/** The settings that can be replaced while a relay runs. */
export interface LiveSettings {
  /** Of the code host's webhook. */
  readonly webhookSecrets: WebhookSecrets
  /** Default: none. */
  readonly sources?: readonly SourceSettings[] | undefined
  readonly routes: RouteSettings
}

/** The complete, checked settings of a relay. Only `cli/settings/` reads the environment. */
export interface Settings extends LiveSettings {
  readonly profile: string
  /** The profile's folder, the only one that relay writes to. Unused by the memory store. */
  readonly folder: string
  readonly provider: ProviderName
  /** The provider's web address without a trailing slash, e.g. `https://github.com`. */
  readonly providerUrl: string
  readonly oauthClient?: OAuthClient | undefined
  readonly host: string
  /** 0 chooses any free port. */
  readonly port: number
  /** Names accepted in a request's Host header, in addition to the loopback names. */
  readonly allowedHosts: readonly string[]
  /** Serves the inspector. Default: true. */
  readonly inspect?: boolean | undefined
  /** Serves GET /metrics. Default: false. */
  readonly metrics?: boolean | undefined
  /**
   * Names accepted in the Host header of a request for the inspector or the metrics, in addition to the loopback names.
   * Default: none.
   */
  readonly inspectHosts?: readonly string[] | undefined
  /** Public address of this service, and base of the redirect URI. Default: the address it listens on. */
  readonly publicUrl?: string | undefined
  /** Page to which a browser returns after signing in. Default: the public address. */
  readonly baseUrl?: string | undefined
  readonly store: StorePlace
  /** Largest accepted webhook body, in bytes. */
  readonly maxBody: number
  /** Lifetime of a token when the provider names none, in milliseconds. */
  readonly tokenTtl: number
  /** Number of parallel deliveries to one target; 1 keeps their order. */
  readonly concurrency: number
  /** When to forward a duplicate again. */
  readonly onDuplicate: (typeof ON_DUPLICATE)[number]
  /** How long the journal keeps deliveries, in milliseconds. */
  readonly keep: number
  /** Maximum size of the journal, in bytes. */
  readonly keepMax: number
  /** A smee channel to listen on, a smee server to create one on, or `new` for another channel. Default: none. */
  readonly tunnel?: string | undefined
}

/** Routes as the command line reads them. */
export interface ReadRoutes extends RouteSettings {
  /** True if only a file of the working folder names the targets: no token of a sender is sent there. Default: false. */
  readonly folderForward?: boolean | undefined
}

/** A source as the command line reads it. */
export interface ReadSource extends SourceSettings {
  /** The setting that alone names its scheme, if that is in a file of the working folder. */
  readonly ofFolder?: string | undefined
}

/** Live settings as the command line reads them. */
export interface ReadLiveSettings extends LiveSettings {
  readonly sources?: readonly ReadSource[] | undefined
  readonly routes: ReadRoutes
}

/** Settings as the command line reads them, with what only a file of the working folder names. */
export interface ReadSettings extends Settings, ReadLiveSettings {
  readonly sources?: readonly ReadSource[] | undefined
  readonly routes: ReadRoutes
  /** Why nothing is sent to the provider: a file of the working folder alone names it. Default: it is called. */
  readonly hostRefusal?: RelayError | undefined
}

/** The defaults of the settings of a relay. */
export const DEFAULTS = {
  profile: DEFAULT_PROFILE,
  provider: 'github',
  host: '127.0.0.1',
  port: 8787,
  store: 'file',
  /** 1 MiB: the service's limit for a webhook body. */
  maxBody: 1_048_576,
  /** 30 days: long enough not to annoy, short enough that a forgotten token expires. */
  tokenTtl: 30 * 86_400_000,
  /** One delivery at a time: keeps their order. */
  concurrency: 1,
  onDuplicate: 'if-failed',
  /** 7 days: GitHub offers redelivery for three, GitHub Enterprise Server for seven. */
  keep: 7 * 86_400_000,
  /** 1 GiB: holds a hundred thousand pushes. */
  keepMax: 2 ** 30,
} as const
/** 25 MiB: GitHub sends nothing larger (docs.github.com, webhook payload cap of 25 MB). */
export const MAX_MAX_BODY = 26_214_400
export const NO_ROUTES: RouteSettings = { forward: [], exec: [], ignore: [] }
/** Public server run by smee's authors. */
export const DEFAULT_TUNNEL = 'https://smee.io'
/** Setting that asks for a new channel, for example because the saved address has leaked. */
export const NEW_TUNNEL = 'new'

/**
 * True if a tunnel's setting is the URL of a channel. For a server, or `new`, relay creates a channel for each source.
 */
export function isChannel(tunnel: string): boolean {
  return tunnel !== NEW_TUNNEL && new URL(tunnel).pathname !== '/'
}

/**
 * Longest user id in bytes. Room for any e-mail address (254), and short enough for a store key that also has a hash.
 */
const MAX_USER_ID = 256

/**
 * Parses the application's name for a user: 1–256 bytes of UTF-8 without control characters, white space or `/`, and
 * neither `.` nor `..`. It is then safe in a store key, a path and a line of text.
 * @throws RelayError `bad_request`
 */
export function parseUserId(text: string): string {
  const valid =
    /^[^\p{Cc}\p{Cs}\p{White_Space}\s/]+$/u.test(text) &&
    text !== '.' &&
    text !== '..' &&
    Buffer.byteLength(text) <= MAX_USER_ID
  if (!valid) throw new RelayError('bad_request', 'Invalid userId')
  return text
}
