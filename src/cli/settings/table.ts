import path from 'node:path'
import {
  DEFAULT_TUNNEL,
  DEFAULTS,
  MAX_MAX_BODY,
  NEW_TUNNEL,
  ON_DUPLICATE,
  PROVIDER_NAMES,
  STORE_KINDS,
  type StoreText,
  parseUserId,
} from '../../base/settings.js'
import { isSharedAddress, SharedStore, splitPassword } from '../../base/shared-store.js'
import { formatDuration, parseDuration } from '../../base/time.js'
import { expandLocal, parseHttpUrl, parsePrivateAddress, parseWebAddress } from '../../base/address.js'
import { parseExec, parseForward, withoutSecrets } from '../../dispatch/routes.js'
import { parseMatch } from '../../journal/filter.js'
import type { Context } from '../context.js'

/**
 * One setting: where it can be set and how its text is read. `parse` throws an Error whose message completes "<name>: …" and
 * never repeats the text: it can be a secret in the wrong place.
 */
export interface Setting {
  /** Its variable, where that is not `RELAY_` and its name. */
  readonly env?: string
  readonly flag?: string
  /** The value of the flag without one. */
  readonly bare?: string
  /** The value of the flag without one, where no other place sets the setting. */
  readonly bareDefault?: string
  readonly help: string
  /** The default in words, if it is not a fixed value. */
  readonly defaultText?: string
  readonly choices?: readonly string[]
  /** Several values: a repeatable flag, one value a line in the environment, a list in files. */
  readonly list?: true
  /** Writes a value as a user would. */
  readonly format?: (value: number) => string
  /** Hides the passwords in a value. */
  readonly mask?: (text: string) => string
  /** Never a flag and never printed; can also be read from the file that `<env>_FILE` names. */
  readonly secret?: true
  /** Can also be read from the file that `<env>_FILE` names, as every secret can. */
  readonly inFile?: true
  /** Whether relay.json may set it, and to what. It can come with a checkout, whose author can be anyone. */
  readonly project?: 'anything' | 'this machine'
  readonly parse: (text: string) => unknown
}

/** Known here, since loading the code hosts would slow down every start. */
export const GITHUB_URL = 'https://github.com'

const LOG_FORMATS = ['text', 'json'] as const

/** More in parallel than a program on the same machine is likely to answer faster. */
const MAX_CONCURRENCY = 64

const port = wholeNumber(0, 65_535)
const anyText = (text: string): string => text

/** Every setting. Flags, environment, files, help, completion and `relay config` are made from this table. */
export const SETTINGS = {
  profile: {
    flag: '--profile <name>',
    help: 'named set of settings and data',
    project: 'anything',
    parse: matching(
      /^(?!\.)[A-Za-z0-9._-]{1,64}$/,
      '1–64 letters, digits, ".", "_" or "-", not starting with "."',
    ),
  },
  home: {
    help: 'data folder',
    defaultText: "the platform's own",
    parse: anyText,
  },
  user: {
    flag: '--user <id>',
    help: 'user to act as',
    defaultText: 'your login name',
    parse: userId,
  },
  provider: {
    flag: '--provider <name>',
    help: `code host: ${PROVIDER_NAMES.join(', ')}`,
    choices: PROVIDER_NAMES,
    project: 'anything',
    parse: oneOf(PROVIDER_NAMES),
  },
  providerUrl: {
    flag: '--provider-url <url>',
    help: 'address of the code host',
    defaultText: `${GITHUB_URL} for github`,
    project: 'anything',
    parse: webAddress,
  },
  clientId: { help: 'OAuth client id', project: 'anything', parse: anyText },
  clientSecret: { help: 'OAuth client secret', secret: true, parse: anyText },
  webhookSecret: {
    help: 'webhook secret',
    defaultText: 'made at first start',
    secret: true,
    parse: anyText,
  },
  webhookSecretPrevious: {
    help: 'previous secret, accepted during rotation',
    secret: true,
    parse: anyText,
  },
  port: {
    flag: '--port <n>',
    help: 'port to listen on, 0 for any free port',
    project: 'anything',
    parse: port,
  },
  host: {
    flag: '--host <address>',
    help: 'address to listen on',
    parse: matching(/^[A-Za-z0-9.:_-]{1,255}$/, 'a host name or an IP address, without brackets or port'),
  },
  allowHost: {
    env: 'RELAY_ALLOWED_HOSTS',
    flag: '--allow-host <names>',
    help: 'further accepted Host names, comma-separated',
    parse: hostNames,
  },
  inspectHost: {
    env: 'RELAY_INSPECT_HOSTS',
    flag: '--inspect-host <name>',
    help: 'Host name of inspector and metrics',
    list: true,
    parse: lines(matching(/^[A-Za-z0-9._-]{1,255}$/, 'a host name, without a port')),
  },
  metrics: {
    flag: '--metrics',
    bare: 'on',
    help: 'Prometheus metrics at /metrics',
    defaultText: 'off',
    parse: oneOf(['on', 'off']),
  },
  logFormat: {
    flag: '--log-format <form>',
    help: 'messages as text or json; --json is for results',
    defaultText: 'text',
    choices: LOG_FORMATS,
    parse: oneOf(LOG_FORMATS),
  },
  publicUrl: {
    flag: '--public-url <url>',
    help: 'address at which browsers reach relay',
    defaultText: 'the listen address',
    parse: webAddress,
  },
  baseUrl: {
    flag: '--base-url <url>',
    help: 'page after signing in, also set by BASE_URL',
    defaultText: 'the public address',
    project: 'this machine',
    parse: pageAddress,
  },
  store: {
    flag: '--store <kind>',
    help: `storage: ${STORE_KINDS.join(', ')}, postgres://…`,
    choices: STORE_KINDS,
    inFile: true,
    parse: storePlace,
  },
  storePassword: {
    env: 'PGPASSWORD',
    help: 'password of a shared store',
    defaultText: 'the one in ~/.pgpass',
    secret: true,
    parse: anyText,
  },
  tokenKey: {
    help: 'key that encrypts what a shared store holds: 32 bytes, base64',
    secret: true,
    parse: encryptionKey,
  },
  tokenKeyPrevious: {
    help: 'another key, accepted during rotation',
    secret: true,
    parse: encryptionKey,
  },
  maxBody: {
    flag: '--max-body <bytes>',
    help: `largest webhook body, up to ${MAX_MAX_BODY}`,
    project: 'anything',
    parse: wholeNumber(1, MAX_MAX_BODY),
  },
  tokenTtl: {
    help: 'token lifetime if none is given',
    format: formatDuration,
    parse: duration,
  },
  forward: {
    flag: '--forward <[match=]url>',
    help: 'forward deliveries to this URL, or port of this machine',
    list: true,
    project: 'this machine',
    mask: withoutSecrets,
    parse: lines(parseForward),
  },
  exec: {
    flag: '--exec <[match=]cmd>',
    help: 'run this command',
    list: true,
    project: 'anything',
    parse: lines(parseExec),
  },
  ignore: {
    flag: '--ignore <match>',
    help: 'do not forward these events',
    list: true,
    project: 'anything',
    parse: lines(parseMatch),
  },
  concurrency: {
    flag: '--concurrency <n>',
    help: 'parallel deliveries to a target; 1 keeps their order',
    project: 'anything',
    parse: wholeNumber(1, MAX_CONCURRENCY),
  },
  onDuplicate: {
    flag: '--on-duplicate <rule>',
    help: `forward a duplicate again: ${ON_DUPLICATE.join(', ')}`,
    choices: ON_DUPLICATE,
    project: 'anything',
    parse: oneOf(ON_DUPLICATE),
  },
  keep: {
    flag: '--keep <duration>',
    help: 'delivery retention',
    format: formatDuration,
    parse: duration,
  },
  keepMax: {
    flag: '--keep-max <size>',
    help: 'maximum size of the journal',
    format: formatSize,
    parse: size,
  },
  tunnel: {
    flag: '--tunnel [url]',
    bareDefault: DEFAULT_TUNNEL,
    help: `smee channel or server (none set: ${DEFAULT_TUNNEL}), or new for another channel`,
    parse: (text) => (text === NEW_TUNNEL ? NEW_TUNNEL : privateAddress(text)),
  },
  sandboxPort: {
    flag: '--sandbox-port <n>',
    help: 'port of the sandbox, 0 for any free port',
    project: 'anything',
    parse: port,
  },
} as const satisfies Readonly<Record<string, Setting>>

export type SettingName = keyof typeof SETTINGS
type AllValues = { [Name in SettingName]: ReturnType<(typeof SETTINGS)[Name]['parse']> }
/** What is set, by the name of the setting. */
export type GivenValues = Partial<AllValues>
/** The settings, with the defaults of what nothing sets. */
export type Values = GivenValues & Pick<AllValues, keyof typeof DEFAULTS | 'home'>

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name)
}

/** In the order in which they are shown. */
export const SETTING_NAMES: readonly SettingName[] = Object.keys(SETTINGS).filter(isSettingName)

/** A setting without the exact types of its value, with its variable. */
export function settingOf(name: SettingName): Setting & { readonly env: string } {
  const env = `RELAY_${name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
  const setting: Setting = SETTINGS[name]
  return { env, ...setting }
}

/** Every variable that is read for a setting: its own, and where it can be in a file the one that names it. */
export function variablesOf(name: SettingName): string[] {
  const { env, secret, inFile = secret } = settingOf(name)
  return inFile ? [env, `${env}_FILE`] : [env]
}

/** A value as a user would write it: a duration or a size with its unit. */
export function formatValue(
  name: SettingName,
  value: AllValues[SettingName],
): string | number | readonly string[] {
  const { format } = settingOf(name)
  return format && typeof value === 'number' ? format(value) : value
}

/** The default, as help shows it; undefined when there is none. */
export function defaultText(name: SettingName): string | undefined {
  const fixed: Readonly<Record<string, string | number>> = DEFAULTS
  const value = fixed[name]
  return settingOf(name).defaultText ?? (value === undefined ? undefined : String(formatValue(name, value)))
}

/** A project's settings file, relay.json, whose author can be anyone, or the user's own, config.json. */
export type Kind = 'project' | 'user'

/** The keys that a file of that kind may have. */
export function keysOf(kind: Kind): string[] {
  if (kind === 'project') return SETTING_NAMES.filter((name) => settingOf(name).project)
  return ['profiles', ...SETTING_NAMES.map((name) => (settingOf(name).secret ? `${name}File` : name))]
}

/** The file with the user's own settings. */
export function userFile({ configFolder }: Pick<Context, 'configFolder'>): string {
  return path.join(configFolder, 'config.json')
}

// Parsers of the text of a setting.

function oneOf<Name extends string>(names: readonly Name[]): (text: string) => Name {
  return (text) => {
    const found = names.find((name) => name === text)
    if (found === undefined) throw new Error(`must be one of ${names.join(', ')}`)
    return found
  }
}

function matching(pattern: RegExp, description: string): (text: string) => string {
  return (text) => {
    if (!pattern.test(text)) throw new Error(`must be ${description}`)
    return text
  }
}

function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= min && value <= max)) throw new Error(`must be a whole number from ${min} to ${max}`)
    return value
  }
}

/** Milliseconds. */
export function duration(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw new Error('must be a duration such as 12h or 30d')
  return ms
}

/** A kind of store, or the address of a shared one, which may hold a password. */
function storePlace(text: string): StoreText {
  const kind = STORE_KINDS.find((known) => known === text)
  if (kind !== undefined) return kind
  if (!isSharedAddress(text))
    throw new Error(`must be one of ${STORE_KINDS.join(', ')}, or like postgres://user@host/database`)
  // Checks the rest.
  void new SharedStore(splitPassword(text).address)
  return text
}

/** 32 bytes in base64. */
function encryptionKey(text: string): string {
  if (!/^[A-Za-z0-9+/]{43}=$/.test(text))
    throw new Error('must be 32 bytes in base64: openssl rand -base64 32')
  return text
}

/** An absolute http(s) address to which paths are added; returned without a trailing slash. */
function webAddress(text: string): string {
  return parseWebAddress(text).href.replace(/\/+$/, '')
}

/** The same for an address that deliveries come from: https, unless on this machine. */
function privateAddress(text: string): string {
  return parsePrivateAddress(text).href.replace(/\/+$/, '')
}

/** An absolute http(s) address of a page, as it was written. */
function pageAddress(text: string): string {
  parseHttpUrl(text)
  return text
}

/** An address to send to; `3000` and `localhost:3000/hooks` are on this machine. */
export function targetAddress(text: string): string {
  return pageAddress(expandLocal(text))
}

const SIZES: Readonly<Record<string, number>> = {
  '': 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
}

/** Bytes. */
function size(text: string): number {
  const [, amount = '', unit = 'none'] = /^(\d{1,12})(|KiB|MiB|GiB|TiB)$/.exec(text) ?? []
  const bytes = Number(amount) * (SIZES[unit] ?? 0)
  if (!(bytes > 0 && Number.isSafeInteger(bytes))) throw new Error('must be a size such as 500MiB or 1GiB')
  return bytes
}

/** In the largest unit that gives a whole number. */
function formatSize(bytes: number): string {
  const units = Object.entries(SIZES).toReversed()
  const [unit = '', one = 1] = units.find(([, one]) => bytes % one === 0) ?? []
  return `${bytes / one}${unit}`
}

/** Several values, one a line. `check` throws an Error that says what is wrong with one. */
function lines(check: (text: string) => unknown): (text: string) => readonly string[] {
  return (text) => {
    const values = text.split('\n').flatMap((line) => line.trim() || [])
    for (const value of values) check(value)
    return values
  }
}

function hostNames(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.some((name) => !/^[A-Za-z0-9._-]{1,255}$/.test(name)))
    throw new Error('must be host names, separated by commas')
  return names
}

function userId(text: string): string {
  try {
    return parseUserId(text)
  } catch {
    throw new Error('must be 1–256 bytes without white space, control characters or "/"')
  }
}
