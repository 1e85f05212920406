import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import type { RunningInstance } from '../instance/protocol.js'
import type { Database } from '../store/open.js'
import { readProfileSecret } from '../webhook/profile-secret.js'
import type { Shell } from './command.js'
import { isOfFolder, type LoadedSettings, type Origins } from './settings/read.js'

// The secret that the code host's deliveries are signed with.

/** A webhook secret, and where it came from: a setting, `profile`, or the process that made it. */
interface FoundSecret {
  readonly secret: Secret
  readonly place: string
}

/**
 * The webhook secret of `--secret-env`, else of the settings, else what only the instance has, else the profile's. Makes none.
 * @param data the profile's data; undefined where it has none
 * @throws RelayError `settings` when the variable of `--secret-env` is not set; `storage`
 */
export async function webhookSecret(
  { env }: Pick<Shell, 'env'>,
  {
    values,
    origins,
    instance,
  }: Pick<LoadedSettings, 'values' | 'origins'> & { readonly instance: RunningInstance | undefined },
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

/** Why a hook or an App should not get this webhook secret: the author of a file of the folder, who can be anyone, has chosen it. */
export function sharedSecretText({ webhookSecret: origin }: Origins): string | undefined {
  if (!origin || !isOfFolder(origin)) return undefined
  return `the code host signs with the secret of ${origin.text}: anyone who can read that can sign deliveries, too. Without it, relay makes one of its own`
}

/** The same where there has to be one; `purpose` completes "no webhook secret to …". @throws RelayError `settings` */
export function requireSecret(found: FoundSecret | undefined, purpose: string): FoundSecret {
  if (found) return found
  throw new RelayError(
    'settings',
    `There is no webhook secret to ${purpose}: set RELAY_WEBHOOK_SECRET, or name a variable with --secret-env`,
  )
}
