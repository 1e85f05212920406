import { homedir } from 'node:os'
import { RelayError, toRelayError } from '../../base/errors.js'
import type { RouteDefinition } from '../../base/settings.js'
import { normalizeWord } from '../../base/text.js'
import { withoutSecrets } from '../../dispatch/routes.js'
import { type RunningInstance, secretPrint } from '../../instance/protocol.js'
import { unreachableError } from '../../instance/running.js'
import type { Database } from '../../store/open.js'
import {
  SETTING_NAMES,
  keysOf,
  userFile,
  defaultText,
  formatValue,
  type SettingName,
  settingOf,
} from '../settings/table.js'
import { define, type Flags, type Shell } from '../command.js'
import type { Output } from '../output/output.js'
import { tilde } from '../output/text.js'
import { openProfile, type Profile } from '../profile.js'
import { userOf } from '../settings/derived.js'
import { readStoredClient } from '../stored-setup.js'
import { webhookSecret } from '../webhook-secret.js'
import { joinSettings, servedBy } from '../settings/join.js'
import type { Values } from '../settings/parse.js'
import { didYouMeanSetting, type LoadedSettings } from '../settings/read.js'
import { addressesOf, readSources, type ListedSource } from '../sources.js'

export const configCommand = define({
  description: `Shows every setting, its value, and where it comes from. A flag wins over the environment, which wins over .env in the
working folder, the project's relay.json, your own config.json, what relay setup stored, what the profile was last served
with, and the default. Where a running relay serve has another value, commands use that one. Secrets are masked.`,
  examples: `relay config
relay config --json | jq .settings.port
relay config --reveal webhookSecret  the secret to enter at the code host`,
  details: (context) => [
    'Files:',
    [
      ['.env', 'in the working folder: variables of settings that relay.json can set, and secrets'],
      ['relay.json', `in the working folder or above it in its checkout: ${keysOf('project').join(', ')}`],
      [
        userFile(context).replace(homedir(), '~'),
        'every setting, secrets as <name>File; and "profiles": {"<profile>": {…}}',
      ],
    ],
  ],
  options: [['--reveal <name>', 'print only the value of this setting, even a secret']],
  env: SETTING_NAMES.filter((name) => name !== 'profile'),
  run: runConfig,
  print,
  json,
})

/** A value as a user would write it. For a secret, the secret itself. */
type Value = string | number | readonly (string | RouteDefinition)[]

/** Description of one setting. */
type Described = ReturnType<typeof describeSetting>

type ConfigInput = Flags & { readonly reveal?: string }

/** One setting to print, or all of them with the sources. */
type Configured =
  | { readonly type: 'one'; readonly name: SettingName; readonly value: Value }
  | { readonly type: 'all'; readonly settings: readonly Described[]; readonly sources: readonly SourceRow[] }

interface SourceRow extends ListedSource {
  readonly address: string
  readonly secret: string | null
}

async function runConfig(shell: Shell, flags: ConfigInput): Promise<Configured> {
  const { out } = shell
  const name = flags.reveal === undefined ? undefined : findName(flags.reveal)
  await using profile = await openProfile(shell, flags, {
    mustExist: false,
    problems: 'report',
    mayBeHub: true,
  })
  const { own, instance, saved, unreachable } = profile
  if (unreachable) out.log.warn(unreachableError(unreachable).message)
  const unreadable = (error: unknown): undefined => {
    out.log.warn(`what relay setup stored could not be read: ${toRelayError(error).message}`)
  }
  const data = await profile.data().catch(unreadable)
  const setup = await (data && readStoredClient(data.secrets, profile).catch(unreadable))
  // Settings without the running instance, or for the next one. The saved use is that of the running instance.
  const here = joinSettings({ own, setup, saved: instance ? undefined : saved })
  const secret = await describeSecret(shell, profile, data)
  const settings = SETTING_NAMES.map((each) =>
    each === 'webhookSecret' ? secret : describeSetting(each, here, instance),
  )
  const one = settings.find((setting) => setting.name === name)
  if (one) {
    const { value, note } = reveal(one)
    if (note !== undefined) out.log.warn(`${one.name}: ${note}`)
    return { type: 'one', name: one.name, value }
  }
  const addressOf = addressesOf(profile)
  const sources = (await readSources(shell, profile, data)).map(({ name, scheme, origin, secretOrigin }) => {
    return { name, scheme, address: addressOf(name), origin, secret: secretOrigin?.text ?? null }
  })
  return { type: 'all', settings, sources }
}

function print(configured: Configured, out: Output): void {
  if (configured.type === 'one') return out.exactly(`${textOf(configured.value)}\n`)
  const { settings, sources } = configured
  const ofSources = sources.map(({ name, address, origin }) => [`source ${name}`, address, tilde(origin)])
  out.table([['name', 'value', 'origin'], ...settings.map(asRow), ...ofSources])
}

function json(configured: Configured) {
  if (configured.type === 'one') return { name: configured.name, value: configured.value }
  const { settings, sources } = configured
  return { settings: Object.fromEntries(settings.map((each) => [each.name, asObject(each)])), sources }
}

function findName(word: string): SettingName {
  const found = SETTING_NAMES.find((name) =>
    [name, settingOf(name).env].some((known) => normalizeWord(known) === normalizeWord(word)),
  )
  if (found !== undefined) return found
  throw new RelayError(
    'usage',
    `--reveal: no setting is called ${word}${didYouMeanSetting(word, SETTING_NAMES)}`,
  )
}

/**
 * Describes a setting as the running instance has it, otherwise as it applies here. `note` is the difference between
 * this shell and the instance.
 */
function describeSetting(
  name: SettingName,
  { values, origins }: LoadedSettings,
  instance: RunningInstance | undefined,
): { name: SettingName; value: Value | undefined; origin: string; note?: string | undefined } {
  const value = values[name] ?? (name === 'user' ? loginName() : undefined)
  const here = value === undefined ? undefined : formatValue(name, value)
  const origin = origins[name]?.text
  const served = instance && servedValues(instance)[name]
  if (instance && served !== undefined && served !== value) {
    const note =
      origin === undefined ? undefined : `${origin} here is ${here === undefined ? 'none' : textOf(here)}`
    return { name, value: formatValue(name, served), origin: `process ${instance.pid}`, note }
  }
  // An instance whose profile is not named was found because it runs.
  const found = name === 'profile' && instance ? `process ${instance.pid}` : 'default'
  return { name, value: here, origin: origin ?? found }
}

function loginName(): string | undefined {
  try {
    return userOf({})
  } catch {
    return undefined
  }
}

/** Returns the settings of an instance that other processes know. */
function servedValues(instance: RunningInstance): Partial<Values> {
  const { url, publicUrl, clientId, maxBody } = instance
  return {
    ...servedBy(instance),
    port: Number(new URL(url).port || HTTP_PORT),
    ...(publicUrl !== url && { publicUrl }),
    ...(clientId && { clientId }),
    maxBody,
  }
}

const HTTP_PORT = 80

/**
 * Describes the secret that signs deliveries: that of this shell, the one that the instance generated, or the
 * profile's.
 */
async function describeSecret(
  shell: Shell,
  profile: Profile,
  data: Database | undefined,
): Promise<Described> {
  const { instance } = profile
  const found = await webhookSecret(shell, profile, { data }).catch(() => undefined)
  const isOther =
    instance && (found === undefined || secretPrint(instance, found.secret) !== instance.secretPrint)
  return {
    name: 'webhookSecret',
    value: found?.secret.reveal(),
    origin: found?.place ?? 'default',
    ...(isOther && { note: `process ${instance.pid} has another` }),
  }
}

/** Returns a setting with its secret. @throws RelayError `settings` for a setting without a value */
function reveal({ name, value, note }: Described) {
  if (value !== undefined) return { name, value, note }
  const text = note ?? (defaultText(name) && `default: ${defaultText(name)}`)
  throw new RelayError('settings', `${name} is not set${text === undefined ? '' : ` (${text})`}`)
}

function asObject({ name, value, ...where }: Described): Record<string, unknown> {
  if (settingOf(name).secret) return { set: value !== undefined, ...where }
  return { value: value === undefined ? null : masked(name, value), ...where }
}

function asRow({ name, value, origin, note }: Described): string[] {
  const text =
    value === undefined ? (note === undefined && defaultText(name)) || '-' : textOf(masked(name, value))
  const place = [tilde(origin), ...(note === undefined ? [] : [note])].join('; ')
  return [name, value !== undefined && settingOf(name).secret ? 'set' : text, place]
}

/** Hides passwords and the values of headers, which only `--reveal` prints. */
function masked(name: SettingName, value: Value): Value {
  if (typeof value !== 'object' || (name !== 'forward' && name !== 'routes')) return value
  return value.map((each) => (typeof each === 'string' ? withoutSecrets(each) : maskedRoute(each)))
}

function maskedRoute({ forward, headers, ...route }: RouteDefinition): RouteDefinition {
  return {
    ...route,
    ...(forward !== undefined && { forward: withoutSecrets(forward) }),
    ...(headers && { headers: Object.fromEntries(Object.keys(headers).map((name) => [name, HIDDEN])) }),
  }
}

const HIDDEN = '***'

function textOf(value: Value): string {
  if (typeof value !== 'object') return String(value)
  return value.every((each) => typeof each === 'string') ? value.join(',') : JSON.stringify(value)
}
