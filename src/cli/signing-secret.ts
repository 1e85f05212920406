import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import type { Context } from './context.js'
import type { OptionValues } from './options.js'
import { profileFolder } from './settings.js'
import { readKeptWebhookSecret } from './webhook-secret.js'

export interface SecretFlags {
  readonly secretEnv?: string
}

/**
 * The webhook secret of the variable that `--secret-env` names, else of the settings, else the one made for the profile.
 * @throws RelayError `settings` when that variable is not set.
 */
export function signingSecret(
  { env }: Context,
  { secretEnv }: SecretFlags,
  options: OptionValues,
): Secret | undefined {
  if (secretEnv !== undefined) {
    const value = env[secretEnv]
    if (value) return new Secret(value)
    throw new RelayError('settings', `--secret-env: ${secretEnv} is not set`)
  }
  if (options.webhookSecret) return new Secret(options.webhookSecret)
  return readKeptWebhookSecret(profileFolder(options), options.store ?? 'file')
}
