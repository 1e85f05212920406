import type { InstanceSettings } from './settings/join.js'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import type { Database } from '../store/open.js'
import { readProfileSecret } from '../webhook/profile-secret.js'
import type { Shell } from './command.js'
import { isOfFolder, type Origins } from './settings/read.js'

// Secret with which the code host signs deliveries.

/** A webhook secret, and its origin: a setting, `profile`, or the process that made it. */
interface FoundSecret {
  readonly secret: Secret
  readonly place: string
}

/**
 * Finds the webhook secret: that of `--secret-env`, of the settings, of the instance's memory, or of the profile, in this
 * order. Creates none.
 * @param data the profile's data. Undefined if it has none
 * @throws RelayError `settings` when the variable of `--secret-env` is not set; `storage`
 */
export async function webhookSecret(
  { env }: Shell,
  { values, origins, instance }: InstanceSettings,
  { secretEnv, data }: { readonly secretEnv?: string | undefined; readonly data: Database | undefined },
): Promise<FoundSecret | undefined> {
  if (secretEnv !== undefined) {
    const value = env[secretEnv]
    if (value) return { secret: new Secret(value), place: secretEnv }
    throw new RelayError('settings', `--secret-env: ${secretEnv} is not set`)
  }
  if (values.webhookSecret)
    return { secret: new Secret(values.webhookSecret), place: origins.webhookSecret?.text ?? '' }
  if (instance && typeof instance.madeSecret === 'string')
    return { secret: new Secret(instance.madeSecret), place: `process ${instance.pid}` }
  const secret = await readProfileSecret(data?.store)
  return secret && { secret, place: 'profile' }
}

/** Warning about a webhook secret from a file of the working folder, which anyone may have written. Undefined for others. */
export function sharedSecretText({ webhookSecret: origin }: Origins): string | undefined {
  if (!origin || !isOfFolder(origin)) return undefined
  return `the code host signs with the secret of ${origin.text}: anyone who can read that can sign deliveries, too. Without it, relay makes one of its own`
}

/** Requires a webhook secret. `purpose` completes "no webhook secret to …". @throws RelayError `settings` without one */
export function requireSecret(found: FoundSecret | undefined, purpose: string): FoundSecret {
  if (found) return found
  throw new RelayError(
    'settings',
    `There is no webhook secret to ${purpose}: set RELAY_WEBHOOK_SECRET, or name a variable with --secret-env`,
  )
}
