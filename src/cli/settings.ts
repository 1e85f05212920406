import path from 'node:path'
import envPaths from 'env-paths'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import {
  DEFAULT_KEEP,
  DEFAULT_KEEP_MAX,
  DEFAULT_MAX_BODY,
  DEFAULT_PORT,
  DEFAULT_TOKEN_TTL,
  type HandOnSettings,
  type Settings,
} from '../base/settings.js'
import type { OptionValues } from './options.js'
import { readWebhookSecret } from './webhook-secret.js'

export type { Flags } from './settings/read.js'

/**
 * Makes the settings of a profile complete and checks that they agree.
 * @throws RelayError `settings` saying what to set.
 */
export function completeSettings(options: OptionValues): Settings {
  const profile = options.profile ?? 'default'
  const folder = profileFolder(options)
  const provider = options.provider ?? 'github'
  const store = options.store ?? 'file'
  const { clientId, clientSecret } = options
  if ((clientId === undefined) !== (clientSecret === undefined)) {
    throw new RelayError(
      'settings',
      'RELAY_CLIENT_ID and RELAY_CLIENT_SECRET go together: set both or neither',
    )
  }
  return {
    profile,
    folder,
    provider,
    providerUrl: providerUrl(provider, options.providerUrl),
    oauthClient: clientId && clientSecret ? { id: clientId, secret: new Secret(clientSecret) } : undefined,
    webhookSecrets: {
      current: options.webhookSecret ? new Secret(options.webhookSecret) : readWebhookSecret(folder, store),
      previous: options.webhookSecretPrevious ? new Secret(options.webhookSecretPrevious) : undefined,
    },
    host: options.host ?? '127.0.0.1',
    port: options.port ?? DEFAULT_PORT,
    allowedHosts: options.allowHost ?? [],
    publicUrl: options.publicUrl,
    baseUrl: options.baseUrl,
    store,
    maxBody: options.maxBody ?? DEFAULT_MAX_BODY,
    tokenTtl: options.tokenTtl ?? DEFAULT_TOKEN_TTL,
    handOn: handOnSettings(options),
    concurrency: options.concurrency ?? 1,
    onDuplicate: options.onDuplicate ?? 'if-failed',
    keep: options.keep ?? DEFAULT_KEEP,
    keepMax: options.keepMax ?? DEFAULT_KEEP_MAX,
    tunnel: options.tunnel,
  }
}

/** Where deliveries are handed on to; may be read anew while relay runs. */
export function handOnSettings({ forward = [], exec = [], ignore = [] }: OptionValues): HandOnSettings {
  return { forward, exec, ignore }
}

/** The folder that holds all data of the profile the options name. */
export function profileFolder(options: OptionValues): string {
  return path.resolve(options.home ?? defaultHome(), options.profile ?? 'default')
}

/** Where data lies unless RELAY_HOME says otherwise: the platform's place for it. */
export function defaultHome(): string {
  return envPaths('relay', { suffix: '' }).data
}

function providerUrl(provider: Settings['provider'], url: string | undefined): string {
  if (url === undefined && provider === 'github') return 'https://github.com'
  if (url === undefined) {
    throw new RelayError(
      'settings',
      provider === 'sandbox'
        ? 'The sandbox does not run: start it with relay serve --sandbox, or name its address with RELAY_PROVIDER_URL'
        : `RELAY_PROVIDER_URL is not set: where is your ${provider}? For example https://git.example.com`,
    )
  }
  return url
}
