import { RelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import type { RunningInstance } from '../../instance/running.js'
import type { Context } from '../context.js'
import { profileFolder } from './complete.js'
import type { OptionValues } from './options.js'
import { readSavedWebhookSecret } from './webhook-secret.js'

export interface SecretFlags {
  readonly secretEnv?: string
}

/** Settings, and the instance that they follow. */
interface Followed {
  readonly options: OptionValues
  readonly instance?: Pick<RunningInstance, 'madeSecret'> | undefined
}

/**
 * The webhook secret in the variable that `--secret-env` names, else that of the settings, else the one that the instance made and
 * keeps in no file, else the one saved in the profile.
 * @throws RelayError `settings` when that variable is not set.
 */
export function signingSecret(
  { env }: Context,
  { secretEnv }: SecretFlags,
  { options, instance }: Followed,
): Secret | undefined {
  if (secretEnv !== undefined) {
    const value = env[secretEnv]
    if (value) return new Secret(value)
    throw new RelayError('settings', `--secret-env: ${secretEnv} is not set`)
  }
  if (options.webhookSecret) return new Secret(options.webhookSecret)
  if (typeof instance?.madeSecret === 'string') return new Secret(instance.madeSecret)
  return readSavedWebhookSecret(profileFolder(options), options.store)
}

/**
 * The same where there has to be one; `purpose` completes "no webhook secret to …".
 * @throws RelayError `settings`
 */
export function requireSecret(secret: Secret | undefined, purpose: string): Secret {
  if (secret) return secret
  throw new RelayError(
    'settings',
    `There is no webhook secret to ${purpose}: set RELAY_WEBHOOK_SECRET, or name a variable with --secret-env`,
  )
}
