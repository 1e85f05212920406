import path from 'node:path'
import envPaths from 'env-paths'
import { RelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import { DEFAULTS, type RouteSettings, type Settings, type StorePlace } from '../../base/settings.js'
import { isSharedAddress, SharedStore } from '../../base/shared-store.js'
import { HOST_KINDS } from '../../codehost/hosts.js'
import type { GivenValues, OptionValues } from './options.js'
import { readWebhookSecret } from './webhook-secret.js'

const HOME = envPaths('relay', { suffix: '' }).data

type SecretSource = typeof readWebhookSecret

/** Adds the defaults of what is not set. */
export function withDefaults(given: GivenValues): OptionValues {
  const values = { ...DEFAULTS, home: HOME, ...given }
  const { defaultUrl } = HOST_KINDS[values.provider]
  return defaultUrl === undefined ? values : { providerUrl: defaultUrl, ...values }
}

/**
 * Makes the settings of a service from the options, after checking that these agree. `secret` gives the webhook secret where the
 * options have none: `readWebhookSecret` of a service makes it, if necessary.
 * @throws RelayError `settings` that names what to set.
 */
export function completeSettings(options: OptionValues, secret: SecretSource = readWebhookSecret): Settings {
  const { provider, providerUrl } = options
  if (providerUrl === undefined) throw noProviderUrl(provider)
  return { provider, providerUrl, ...settingsWithoutCodeHost(options, secret) }
}

/** The same for a relay that starts its code host itself. */
export function settingsWithoutCodeHost(
  options: OptionValues,
  secret: SecretSource = readWebhookSecret,
): Omit<Settings, 'provider' | 'providerUrl'> {
  const folder = profileFolder(options)
  const { clientId, clientSecret, webhookSecret, webhookSecretPrevious } = options
  if ((clientId === undefined) !== (clientSecret === undefined))
    throw new RelayError('settings', 'Set both RELAY_CLIENT_ID and RELAY_CLIENT_SECRET, or neither of them')
  return {
    profile: options.profile,
    folder,
    oauthClient: clientId && clientSecret ? { id: clientId, secret: new Secret(clientSecret) } : undefined,
    webhookSecrets: {
      current: webhookSecret ? new Secret(webhookSecret) : secret(folder, options.store),
      previous: webhookSecretPrevious ? new Secret(webhookSecretPrevious) : undefined,
    },
    host: options.host,
    port: options.port,
    allowedHosts: options.allowHost ?? [],
    inspectHosts: options.inspectHost ?? [],
    metrics: options.metrics === 'on',
    publicUrl: options.publicUrl,
    baseUrl: options.baseUrl,
    store: storeOf(options),
    maxBody: options.maxBody,
    tokenTtl: options.tokenTtl,
    routes: forwardSettings(options),
    concurrency: options.concurrency,
    onDuplicate: options.onDuplicate,
    keep: options.keep,
    keepMax: options.keepMax,
    tunnel: options.tunnel,
  }
}

/** Where deliveries are forwarded to. The only settings that a running instance reads again. */
export function forwardSettings({ forward = [], exec = [], ignore = [] }: OptionValues): RouteSettings {
  return { forward, exec, ignore }
}

/**
 * Where the profile's data is, with what opens it.
 * @throws RelayError `settings` when a shared store has no key.
 */
export function storeOf({ store, storePassword, tokenKey, tokenKeyPrevious }: OptionValues): StorePlace {
  if (!isSharedAddress(store)) return store
  if (tokenKey === undefined)
    throw new RelayError(
      'settings',
      'RELAY_TOKEN_KEY is not set. It encrypts what a shared store holds: make it with openssl rand -base64 32, and set the same for every relay and command that uses the store',
    )
  const previous = tokenKeyPrevious === undefined ? undefined : new Secret(tokenKeyPrevious)
  const password = storePassword === undefined ? undefined : new Secret(storePassword)
  return new SharedStore(store, { password, keys: { current: new Secret(tokenKey), previous } })
}

/** The folder that holds all data of the profile. */
export function profileFolder({ home, profile }: Pick<OptionValues, 'home' | 'profile'>): string {
  return path.resolve(home, profile)
}

function noProviderUrl(provider: Settings['provider']): RelayError {
  return new RelayError(
    'settings',
    provider === 'sandbox'
      ? 'The sandbox is not running. Start it with relay serve --sandbox, or set RELAY_PROVIDER_URL to its address'
      : `RELAY_PROVIDER_URL is not set. Set it to the address of your ${provider}, for example https://git.example.com`,
  )
}
