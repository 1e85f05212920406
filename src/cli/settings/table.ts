import path from 'node:path'
import { PROVIDER_NAMES, type ProviderName } from '../../base/source-names.js'
import { secretSetting } from '../../base/secret-variables.js'
import { DEFAULT_TUNNEL, DEFAULTS, MAX_MAX_BODY, ON_DUPLICATE, STORE_KINDS } from '../../base/settings.js'
import { formatDuration } from '../../base/time.js'
import type { Context } from '../context.js'

/** Defaults of the settings. `sandboxPort` is only for `relay serve --sandbox`. */
export const DEFAULT_VALUES = { ...DEFAULTS, sandboxPort: 8788 } as const

/** Description of one setting: its places, and its help. `parse.ts` parses its text. */
interface Setting {
  /** Its variable, if that is not `RELAY_` and its name. */
  readonly env?: string
  readonly flag?: string
  /** Value of the flag without one. */
  readonly bare?: string
  /** Value of the flag without one, if no other place sets the setting. */
  readonly bareDefault?: string
  readonly help: string
  /** Description of the default, if it is no fixed value. */
  readonly defaultText?: string
  readonly choices?: readonly string[]
  /** Set for several values: a repeatable flag, one value a line in the environment, a list in files. */
  readonly list?: true
  readonly format?: (value: number) => string
  /**
   * Set by {@link secretSetting}. Never a flag and never printed; can also be read from the file that `<env>_FILE`
   * names.
   */
  readonly secret?: true
  /** Set for a secret of the store, which only the user names: no file of a project replaces the user's. */
  readonly ofUser?: true
  readonly inFile?: true
  /** Values that relay.json may set, if any. It can come with a checkout, whose author can be anyone. */
  readonly project?: 'anything' | 'this machine' | 'proved' | 'of this machine alone'
}

/** A copy, since loading the code hosts would slow down every start. */
export const GITHUB_URL = 'https://github.com'

/** Addresses of the code hosts that have a public one. */
export const PUBLIC_HOSTS: Readonly<Partial<Record<ProviderName, string>>> = {
  github: GITHUB_URL,
  gitlab: 'https://gitlab.com',
}

/** All settings. Flags, environment, files, help, completion and `relay config` are generated from this table. */
export const SETTINGS = {
  profile: {
    flag: '--profile <name>',
    help: 'named set of settings and data',
    project: 'anything',
    defaultText: 'default, and hub for a hub',
  },
  home: { help: 'data folder', defaultText: "the platform's own" },
  user: { flag: '--user <id>', help: 'user to act as', defaultText: 'your login name' },
  provider: {
    flag: '--provider <name>',
    help: `code host: ${PROVIDER_NAMES.join(', ')}`,
    choices: PROVIDER_NAMES,
    project: 'anything',
  },
  providerUrl: {
    flag: '--provider-url <url>',
    help: 'address of the code host',
    defaultText: 'that of github.com, gitlab.com',
    project: 'anything',
  },
  clientId: { help: 'OAuth client id', project: 'anything' },
  clientSecret: { ...secretSetting('clientSecret'), help: 'OAuth client secret' },
  webhookSecret: {
    ...secretSetting('webhookSecret'),
    help: 'webhook secret',
    defaultText: 'made at first start',
  },
  webhookSecretPrevious: {
    ...secretSetting('webhookSecretPrevious'),
    help: 'previous secret, accepted during rotation',
  },
  sources: { flag: '--source <name=scheme>', help: 'another sender', list: true, project: 'proved' },
  port: { flag: '--port <n>', help: 'port to listen on', project: 'anything' },
  host: { flag: '--host <address>', help: 'listen address' },
  allowHost: {
    env: 'RELAY_ALLOWED_HOSTS',
    flag: '--allow-host <names>',
    help: 'further Host names: a,b',
  },
  inspectHost: {
    env: 'RELAY_INSPECT_HOSTS',
    flag: '--inspect-host <name>',
    help: 'Host name of inspector and metrics',
    list: true,
  },
  metrics: { flag: '--metrics', bare: 'on', help: 'serve /metrics', defaultText: 'off' },
  logFormat: {
    flag: '--log-format <form>',
    help: 'messages as text or json; --json is for results',
    defaultText: 'text',
    choices: ['text', 'json'],
  },
  publicUrl: {
    flag: '--public-url <url>',
    help: 'address at which browsers reach relay',
    defaultText: 'the listen address',
  },
  baseUrl: {
    flag: '--base-url <url>',
    help: 'page after signing in, also set by BASE_URL',
    defaultText: 'the public address',
    project: 'this machine',
  },
  store: {
    flag: '--store <kind>',
    help: `storage: ${STORE_KINDS.join(', ')}, postgres://…`,
    choices: STORE_KINDS,
    inFile: true,
  },
  storePassword: {
    ...secretSetting('storePassword'),
    ofUser: true,
    help: 'password of a shared store',
    defaultText: 'the one in ~/.pgpass',
  },
  tokenKey: {
    ...secretSetting('tokenKey'),
    ofUser: true,
    help: 'key that encrypts what a shared store holds: 32 bytes, base64',
  },
  tokenKeyPrevious: {
    ...secretSetting('tokenKeyPrevious'),
    ofUser: true,
    help: 'another key, accepted during rotation',
  },
  maxBody: { flag: '--max-body <bytes>', help: `largest body, up to ${MAX_MAX_BODY}`, project: 'anything' },
  tokenTtl: { help: 'token lifetime if none is given', format: formatDuration },
  forward: {
    flag: '--forward <[match=]url>',
    help: 'forward deliveries to this URL, or port of this machine',
    list: true,
    project: 'this machine',
  },
  exec: { flag: '--exec <[match=]cmd>', help: 'run this command', list: true, project: 'anything' },
  routes: {
    help: 'routes as objects, a JSON list',
    defaultText: 'none',
    project: 'of this machine alone',
  },
  ignore: { flag: '--ignore <match>', help: 'events not forwarded', list: true, project: 'anything' },
  timeout: {
    flag: '--timeout <duration>',
    help: "attempt's time limit, or none",
    defaultText: '30s, 10m for a command',
    format: formatTimeout,
    project: 'anything',
  },
  reply: {
    flag: '--reply <source[=time]>',
    help: 'pass answers on to it',
    list: true,
    project: 'anything',
  },
  concurrency: {
    flag: '--concurrency <n>',
    help: 'parallel deliveries to a target; 1 keeps their order',
    project: 'anything',
  },
  onDuplicate: {
    flag: '--on-duplicate <rule>',
    help: `forward a duplicate again: ${ON_DUPLICATE.join(', ')}`,
    choices: ON_DUPLICATE,
    project: 'anything',
  },
  keep: { flag: '--keep <duration>', help: 'delivery retention', format: formatDuration },
  keepMax: { flag: '--keep-max <size>', help: 'journal size', format: formatSize },
  tunnel: {
    flag: '--tunnel [url]',
    bareDefault: DEFAULT_TUNNEL,
    help: 'hub (with RELAY_HUB_TOKEN), smee server or channel; none set: smee.io; or new',
  },
  hubToken: {
    ...secretSetting('hubToken'),
    ofUser: true,
    help: 'invitation of a hub, for its first channel',
  },
  sandboxPort: { flag: '--sandbox-port <n>', help: 'port of the sandbox, 0 for any', project: 'anything' },
} as const satisfies Readonly<Record<string, Setting>>

export type SettingName = keyof typeof SETTINGS

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name)
}

/** Names in the order in which they are shown. */
export const SETTING_NAMES: readonly SettingName[] = Object.keys(SETTINGS).filter(isSettingName)

/** Returns a setting with its variable. */
export function settingOf(name: SettingName): Setting & { readonly env: string } {
  const env = `RELAY_${name.replaceAll(/[A-Z]/g, '_$&').toUpperCase()}`
  return { env, ...SETTINGS[name] }
}

/** Lists the variables of a setting: its own and, if it can be in a file, the one that names the file. */
export function variablesOf(name: SettingName): string[] {
  const { env, secret, inFile = secret } = settingOf(name)
  return inFile ? [env, `${env}_FILE`] : [env]
}

export function formatValue<Value extends string | number | readonly unknown[]>(
  name: SettingName,
  value: Value,
): Value | string {
  const { format } = settingOf(name)
  return format && typeof value === 'number' ? format(value) : value
}

export function defaultText(name: SettingName): string | undefined {
  const fixed: Readonly<Record<string, string | number>> = DEFAULT_VALUES
  const value = fixed[name]
  return settingOf(name).defaultText ?? (value === undefined ? undefined : String(formatValue(name, value)))
}

/** Lists the keys of relay.json, or of the user's own config.json. */
export function keysOf(kind: 'project' | 'user'): string[] {
  if (kind === 'project') return SETTING_NAMES.filter((name) => settingOf(name).project)
  return ['profiles', ...SETTING_NAMES.map((name) => (settingOf(name).secret ? `${name}File` : name))]
}

export function userFile({ configFolder }: Pick<Context, 'configFolder'>): string {
  return path.join(configFolder, 'config.json')
}

/** Finds relay's name for a word of other programs. `meanings` has those words for each name, separated by spaces. */
export function meantBy(word: string, meanings: Readonly<Record<string, string>>): string | undefined {
  return Object.keys(meanings).find((name) => meanings[name]?.split(' ').includes(word))
}

export const SIZES: Readonly<Record<string, number>> = {
  '': 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
}

/** Formats a time limit in milliseconds. */
function formatTimeout(ms: number): string {
  return ms === Infinity ? 'none' : formatDuration(ms)
}

/** Formats a size in the largest unit that gives a whole number. */
function formatSize(bytes: number): string {
  const [unit, size = 1] = Object.entries(SIZES).findLast(([, each]) => bytes % each === 0) ?? []
  return `${bytes / size}${unit}`
}
