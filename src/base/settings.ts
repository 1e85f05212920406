import { DEFAULT_PROFILE } from './command-line.js'
import { RelayError } from './errors.js'
import { PROVIDER_NAMES, type ProviderName } from './source-names.js'
import type { Secret } from './secret.js'
import type { SharedAddress, SharedStore } from './shared-store.js'

export { PROVIDER_NAMES, type ProviderName }

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
  /**
   * The private half of relay's own key pair, in PEM, for a sender that signs with a key pair: then the others are its
   * public keys. Signs what relay makes itself. Default: nothing can be signed.
   */
  readonly own?: Secret | undefined
}

/** OAuth application registered at the provider. */
export interface OAuthClient {
  readonly id: string
  readonly secret: Secret
}

export const ON_DUPLICATE = ['if-failed', 'always', 'never'] as const

/** A route as an object, with either `forward` or `exec`. */
export interface RouteDefinition {
  /** 1–32 letters, digits, `_` and `-`, beginning with a letter. It identifies the target. */
  readonly name?: string | undefined
  /** Events: `push`, `issues.opened`, `stripe/invoice.paid`; one of a list must match. Default: every delivery. */
  readonly match?: string | readonly string[] | undefined
  /** Conditions as of `relay wait --where`, which must all hold: `ref==refs/heads/main`. Default: none. */
  readonly where?: string | readonly string[] | undefined
  /** Address that gets the deliveries: `http://localhost:3000/hooks`. */
  readonly forward?: string | undefined
  /** Command that runs for each delivery. */
  readonly exec?: string | undefined
  /** Time limit of one attempt: `90s`, or `none`. Default: {@link RouteSettings.timeout}. */
  readonly timeout?: string | undefined
  /** Holds up later deliveries while one has to be tried again. Default: false. */
  readonly ordered?: boolean | undefined
  /** Attempts at once, 1 to 64. Default: that of the settings. */
  readonly concurrency?: number | undefined
  /**
   * Headers for an address, by name. `$NAME` or `${NAME}` in a value is a variable of the environment, `$$` a `$`. They
   * replace those of the sender.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** False: the certificate is not checked. Only for an address of this machine. */
  readonly verify?: boolean | undefined
  /** File of the certificates, in PEM, that sign for an address. Default: those that Node trusts. */
  readonly ca?: string | undefined
  /**
   * The target's answer is the sender's, if it comes within this time: `2500ms`, or `true` for as long as the sender
   * waits. Of one route for each source. Default: the sender gets 200 at once.
   */
  readonly reply?: boolean | string | undefined
}

/** A route that the profile stores. It forwards to an address: a stored route never runs a command. */
export type ProfileRoute = Pick<
  RouteDefinition,
  'name' | 'match' | 'where' | 'timeout' | 'ordered' | 'headers'
> & { readonly forward: string }

/** Forwarding rules as written in the settings: `[name=][match=]url`, `[name=][match=]command`, `match`. */
export interface RouteSettings {
  readonly forward: readonly string[]
  readonly exec: readonly string[]
  readonly ignore: readonly string[]
  /** Further routes, as objects. Default: none. */
  readonly routes?: readonly RouteDefinition[] | undefined
  /** Time limit of one attempt in milliseconds, Infinity for none. Default: 30 s, 10 minutes for a command. */
  readonly timeout?: number | undefined
  /** Sources whose route's target answers the sender: `slack`, `slack=2500ms`. Default: none. */
  readonly reply?: readonly string[] | undefined
}

/** A source, and how it signs. */
export interface NamedScheme {
  readonly name: string
  /** Scheme as written: `stripe`, or `hmac header=X-Signature`. */
  readonly scheme: string
}

/** A sender of deliveries other than the code host. */
export interface SourceSettings extends NamedScheme {
  /** Signing secrets. The secret of a scheme without proof is empty. */
  readonly secrets: WebhookSecrets
}

/** The settings that can be replaced while a relay runs. */
export interface LiveSettings {
  /** Secrets of the code host's webhook. */
  readonly webhookSecrets: WebhookSecrets
  /** Default: none. */
  readonly sources?: readonly SourceSettings[] | undefined
  /** Rules in their short form, or routes as objects. */
  readonly routes: RouteSettings | readonly RouteDefinition[]
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
  /**
   * A smee channel to listen on, a smee server or a hub to create one on, or `new` for another channel of a smee server.
   * Default: none.
   */
  readonly tunnel?: string | undefined
  /** Invitation of a hub, for a channel that is not there yet. */
  readonly hubToken?: Secret | undefined
}

/** Routes as the command line reads them. */
export interface ReadRoutes extends RouteSettings {
  /** True if only a file of the working folder names the targets: no token of a sender is sent there. Default: false. */
  readonly folderForward?: boolean | undefined
  /** {@link folderForward} for {@link RouteSettings.routes}. */
  readonly folderRoutes?: boolean | undefined
  /** Routes that the profile stores. One whose name or target the settings have is left out. Default: none. */
  readonly profileRoutes?: readonly ProfileRoute[] | undefined
}

/** A source as the command line reads it. */
export interface ReadSource extends SourceSettings {
  /** The setting that alone names its scheme, if that is in a file of the working folder. */
  readonly ofFolder?: string | undefined
}

/** Live settings as the command line reads them. */
export interface ReadLiveSettings extends LiveSettings {
  readonly sources?: readonly ReadSource[] | undefined
  readonly routes: ReadRoutes | readonly RouteDefinition[]
}

/** The code host, and why it may not be called. */
export interface CodeHostSettings {
  readonly provider: ProviderName
  readonly providerUrl: string
  /** Why nothing is sent to the provider: a file of the working folder alone names it. Default: it is called. */
  readonly hostRefusal?: RelayError | undefined
}

/** Settings as the command line reads them, with what only a file of the working folder names. */
export interface ReadSettings extends Settings, ReadLiveSettings, CodeHostSettings {
  readonly sources?: readonly ReadSource[] | undefined
  readonly routes: ReadRoutes | readonly RouteDefinition[]
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
