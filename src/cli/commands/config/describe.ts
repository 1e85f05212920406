import { readUser } from '../../session/user.js'
import { profileFolder } from '../../settings/complete.js'
import { formatValue, OPTION_NAMES, type OptionName, type OptionValues } from '../../settings/options.js'
import type { LoadedOptions } from '../../settings/read.js'
import { readSavedWebhookSecret, webhookSecretFile } from '../../settings/webhook-secret.js'

/** A value as a user would write it. Of a secret, the secret. */
export type Value = string | number | readonly string[]

/** One setting in force. */
export interface DescribedSetting {
  readonly name: OptionName
  /** Undefined when it is not set and has no default. */
  readonly value: Value | undefined
  /** Where the value came from, or `default`. */
  readonly origin: string
}

/** Every setting with its value and origin. */
export function describeSettings({ options, origins }: LoadedOptions): DescribedSetting[] {
  return OPTION_NAMES.map((name) => {
    const origin = origins[name]?.text
    const value = options[name]
    if (origin === undefined && name === 'webhookSecret') return savedSecret(options)
    if (origin === undefined && name === 'user') return { name, value: userName(), origin: 'default' }
    return {
      name,
      value: value === undefined ? undefined : formatValue(name, value),
      origin: origin ?? 'default',
    }
  })
}

/** The webhook secret that relay made for the profile, if it has made one. */
function savedSecret(options: OptionValues): DescribedSetting {
  const folder = profileFolder(options)
  const value = readSavedWebhookSecret(folder, options.store)?.reveal()
  return { name: 'webhookSecret', value, origin: value === undefined ? 'default' : webhookSecretFile(folder) }
}

function userName(): string | undefined {
  try {
    return readUser({})
  } catch {
    return undefined
  }
}
