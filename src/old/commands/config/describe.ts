import { Secret } from '../../../base/secret.js'
import { type RunningInstance, secretPrint } from '../../../instance/running.js'
import type { Attached } from '../../session/attach.js'
import { readUser } from '../../session/user.js'
import { profileFolder } from '../../settings/complete.js'
import { formatValue, OPTION_NAMES, type OptionName, type OptionValues } from '../../settings/options.js'
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
  /** How this shell and the running instance differ. */
  readonly note?: string
}

type Described = Pick<Attached, 'options' | 'own' | 'origins' | 'instance'>

/** Every setting with its value and origin: where the running instance is known to have another one, with the instance's. */
export function describeSettings(attached: Described): DescribedSetting[] {
  return OPTION_NAMES.map((name) =>
    name === 'webhookSecret' ? webhookSecret(attached) : followed(ownSetting(name, attached), attached),
  )
}

/** As this shell alone has it. */
function ownSetting(name: OptionName, { own, origins, instance }: Described): DescribedSetting {
  // An instance whose profile is not named was found because it runs.
  const found = name === 'profile' && instance ? `process ${instance.pid}` : undefined
  const origin = origins[name]?.text ?? found
  const value = own[name]
  if (origin === undefined && name === 'user') return { name, value: userName(), origin: 'default' }
  return {
    name,
    value: value === undefined ? undefined : formatValue(name, value),
    origin: origin ?? 'default',
  }
}

/** As the running instance has it or, if none runs, as the profile's last one had it. */
function followed(
  setting: DescribedSetting,
  { options, own, origins, instance }: Described,
): DescribedSetting {
  const { name } = setting
  const served = { ...options, ...(instance && servedValues(instance)) }[name]
  if (served === undefined || served === own[name]) return setting
  const given = origins[name]
  return {
    name,
    value: formatValue(name, served),
    origin: instance ? `process ${instance.pid}` : 'the last relay serve',
    ...(given && { note: `${given.text} here is ${String(setting.value)}` }),
  }
}

/** What other processes know of an instance's settings, without its store and code host. */
function servedValues({ url, publicUrl, clientId, maxBody }: RunningInstance): Partial<OptionValues> {
  return {
    port: Number(new URL(url).port || HTTP_PORT),
    ...(publicUrl !== url && { publicUrl }),
    ...(clientId && { clientId }),
    ...(maxBody && { maxBody }),
  }
}

const HTTP_PORT = 80

/** The secret that deliveries are signed with: that of this shell, the one that the instance made, or the profile's. */
function webhookSecret({ options, origins, instance }: Described): DescribedSetting {
  const name = 'webhookSecret'
  const folder = profileFolder(options)
  const made = instance?.madeSecret ?? undefined
  const secret = options.webhookSecret ?? made ?? readSavedWebhookSecret(folder, options.store)?.reveal()
  const place = made === undefined ? webhookSecretFile(folder) : `process ${instance?.pid}`
  const isOther =
    instance && (secret === undefined || secretPrint(instance, new Secret(secret)) !== instance.secretPrint)
  return {
    name,
    value: secret,
    origin: origins[name]?.text ?? (secret === undefined ? 'default' : place),
    ...(isOther && { note: `process ${instance.pid} has another` }),
  }
}

function userName(): string | undefined {
  try {
    return readUser({})
  } catch {
    return undefined
  }
}
