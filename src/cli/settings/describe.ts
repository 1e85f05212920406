import { OPTION_NAMES, OPTIONS, type OptionName, type OptionRow, type OptionValues } from '../options.js'
import { defaultHome, profileFolder } from '../settings.js'
import { readUser } from '../user.js'
import { readKeptWebhookSecret, webhookSecretFile } from '../webhook-secret.js'
import type { Reading } from './read.js'

/** One setting as it is in force. */
export interface Described {
  readonly name: OptionName
  readonly secret: boolean
  /** As one would write it; undefined when it is not set and has no default. Of a secret, the secret. */
  readonly value: string | number | readonly string[] | undefined
  /** Where the value came from; `default` when nobody set it. */
  readonly origin: string
  /** What holds when there is no value. */
  readonly otherwise: string | undefined
}

/** Every setting, what it is and where that came from. */
export function describeSettings(reading: Reading): Described[] {
  return OPTION_NAMES.map((name) => describe(name, reading))
}

function describe(name: OptionName, { options, origins }: Reading): Described {
  const { secret, otherwise }: OptionRow<unknown> = OPTIONS[name]
  const given = written(options, name)
  const common = { name, secret: secret === true, otherwise }
  if (given !== undefined) return { ...common, value: given, origin: origins[name]?.text ?? 'default' }
  const folder = profileFolder(options)
  const kept = name === 'webhookSecret' ? readKeptWebhookSecret(folder, options.store ?? 'file') : undefined
  if (kept) return { ...common, value: kept.reveal(), origin: webhookSecretFile(folder) }
  return { ...common, value: defaultOf(name, options), origin: 'default' }
}

/** The value in the form in which it may be set: a duration or size in the units of people. */
function written(options: OptionValues, name: OptionName): Described['value'] {
  const { format }: OptionRow<unknown> = OPTIONS[name]
  const value = options[name]
  return format && typeof value === 'number' ? format(value) : value
}

function defaultOf(name: OptionName, options: OptionValues): Described['value'] {
  const row: OptionRow<Described['value']> = OPTIONS[name]
  if (name === 'home') return defaultHome()
  if (name === 'user') return userName()
  if (name === 'providerUrl')
    return (options.provider ?? 'github') === 'github' ? 'https://github.com' : undefined
  if (row.default === undefined) return undefined
  return row.format ? row.default : row.parse(row.default)
}

function userName(): string | undefined {
  try {
    return readUser({})
  } catch {
    return undefined
  }
}
