import type { JournalQueries } from './journal/read.js'

export { RelayError, type ErrorKind } from './base/errors.js'
export { silentLog, type Log } from './base/log.js'
export { Secret } from './base/secret.js'
export { DEFAULTS } from './base/settings.js'
export type {
  OAuthClient,
  ProviderName,
  RouteDefinition,
  RouteSettings,
  Settings,
  StoreKind,
  WebhookSecrets,
} from './base/settings.js'
export type { Header } from './http/headers.js'
export type { Delivery, Entry, Receipt } from './journal/types.js'
export { createRelay, type Relay, type RelayOptions } from './relay.js'
export { mount, serve } from './serve/program.js'
export type { Mounted, ReceiveOptions, SandboxSettings, ServeOptions, Serving } from './serve/serve.js'

/** The read-only part of a relay's journal, for embedding programs. */
export type Journal = JournalQueries
