import {
  DEFAULT_TUNNEL,
  DEFAULTS,
  MAX_MAX_BODY,
  NEW_TUNNEL,
  ON_DUPLICATE,
  PROVIDER_NAMES,
  STORE_KINDS,
} from '../../base/settings.js'
import { formatDuration } from '../../base/time.js'
import { parseExec, parseForward, withoutSecrets } from '../../dispatch/routes.js'
import { parseMatch } from '../../journal/filter.js'
import type { OptionSpec } from './option-spec.js'
import {
  anyText,
  duration,
  encryptionKey,
  formatSize,
  hostNames,
  lines,
  matching,
  oneOf,
  pageAddress,
  port,
  privateAddress,
  size,
  storePlace,
  userId,
  webAddress,
  wholeNumber,
} from './parsers.js'

const LOG_FORMATS = ['text', 'json'] as const

/** More in parallel than a program on the same machine is likely to answer faster. */
export const MAX_CONCURRENCY = 64

/** Every setting. Flags, environment, files, help, completion and `relay config` are made from this table. */
export const OPTIONS = {
  profile: {
    env: 'RELAY_PROFILE',
    flag: '--profile <name>',
    help: 'named set of settings and data',
    project: 'anything',
    parse: matching(
      /^(?!\.)[A-Za-z0-9._-]{1,64}$/,
      '1–64 letters, digits, ".", "_" or "-", not starting with "."',
    ),
  },
  home: {
    env: 'RELAY_HOME',
    help: 'data folder',
    defaultText: "the platform's own",
    parse: anyText,
  },
  user: {
    env: 'RELAY_USER',
    flag: '--user <id>',
    help: 'user to act as',
    defaultText: 'your login name',
    parse: userId,
  },
  provider: {
    env: 'RELAY_PROVIDER',
    flag: '--provider <name>',
    help: `code host: ${PROVIDER_NAMES.join(', ')}`,
    choices: PROVIDER_NAMES,
    project: 'anything',
    parse: oneOf(PROVIDER_NAMES),
  },
  providerUrl: {
    env: 'RELAY_PROVIDER_URL',
    flag: '--provider-url <url>',
    help: 'address of the code host',
    defaultText: 'https://github.com for github',
    project: 'anything',
    parse: webAddress,
  },
  clientId: { env: 'RELAY_CLIENT_ID', help: 'OAuth client id', project: 'anything', parse: anyText },
  clientSecret: { env: 'RELAY_CLIENT_SECRET', help: 'OAuth client secret', secret: true, parse: anyText },
  webhookSecret: {
    env: 'RELAY_WEBHOOK_SECRET',
    help: 'webhook secret',
    defaultText: 'made at first start',
    secret: true,
    parse: anyText,
  },
  webhookSecretPrevious: {
    env: 'RELAY_WEBHOOK_SECRET_PREVIOUS',
    help: 'previous secret, accepted during rotation',
    secret: true,
    parse: anyText,
  },
  port: {
    env: 'RELAY_PORT',
    flag: '--port <n>',
    help: 'port to listen on, 0 for any free port',
    project: 'anything',
    parse: port,
  },
  host: {
    env: 'RELAY_HOST',
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
    env: 'RELAY_METRICS',
    flag: '--metrics',
    bare: 'on',
    help: 'Prometheus metrics at /metrics',
    defaultText: 'off',
    parse: oneOf(['on', 'off']),
  },
  logFormat: {
    env: 'RELAY_LOG_FORMAT',
    flag: '--log-format <form>',
    help: 'messages as text or json; --json is for results',
    defaultText: 'text',
    choices: LOG_FORMATS,
    parse: oneOf(LOG_FORMATS),
  },
  publicUrl: {
    env: 'RELAY_PUBLIC_URL',
    flag: '--public-url <url>',
    help: 'address at which browsers reach relay',
    defaultText: 'the listen address',
    parse: webAddress,
  },
  baseUrl: {
    env: 'RELAY_BASE_URL',
    flag: '--base-url <url>',
    help: 'page after signing in, also set by BASE_URL',
    defaultText: 'the public address',
    project: 'this machine',
    parse: pageAddress,
  },
  store: {
    env: 'RELAY_STORE',
    flag: '--store <kind>',
    help: `storage: ${STORE_KINDS.join(', ')}, postgres://…`,
    choices: STORE_KINDS,
    file: true,
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
    env: 'RELAY_TOKEN_KEY',
    help: 'key that encrypts what a shared store holds: 32 bytes, base64',
    secret: true,
    parse: encryptionKey,
  },
  tokenKeyPrevious: {
    env: 'RELAY_TOKEN_KEY_PREVIOUS',
    help: 'another key, accepted during rotation',
    secret: true,
    parse: encryptionKey,
  },
  maxBody: {
    env: 'RELAY_MAX_BODY',
    flag: '--max-body <bytes>',
    help: `largest webhook body, up to ${MAX_MAX_BODY}`,
    project: 'anything',
    parse: wholeNumber(1, MAX_MAX_BODY),
  },
  tokenTtl: {
    env: 'RELAY_TOKEN_TTL',
    help: 'token lifetime if none is given',
    format: formatDuration,
    parse: duration,
  },
  forward: {
    env: 'RELAY_FORWARD',
    flag: '--forward <[match=]url>',
    help: 'forward deliveries to this URL, or port of this machine',
    list: true,
    project: 'this machine',
    mask: withoutSecrets,
    parse: lines(parseForward),
  },
  exec: {
    env: 'RELAY_EXEC',
    flag: '--exec <[match=]cmd>',
    help: 'run this command',
    list: true,
    project: 'anything',
    parse: lines(parseExec),
  },
  ignore: {
    env: 'RELAY_IGNORE',
    flag: '--ignore <match>',
    help: 'do not forward these events',
    list: true,
    project: 'anything',
    parse: lines(parseMatch),
  },
  concurrency: {
    env: 'RELAY_CONCURRENCY',
    flag: '--concurrency <n>',
    help: 'parallel deliveries to a target; 1 keeps their order',
    project: 'anything',
    parse: wholeNumber(1, MAX_CONCURRENCY),
  },
  onDuplicate: {
    env: 'RELAY_ON_DUPLICATE',
    flag: '--on-duplicate <rule>',
    help: `forward a duplicate again: ${ON_DUPLICATE.join(', ')}`,
    choices: ON_DUPLICATE,
    project: 'anything',
    parse: oneOf(ON_DUPLICATE),
  },
  keep: {
    env: 'RELAY_KEEP',
    flag: '--keep <duration>',
    help: 'delivery retention',
    format: formatDuration,
    parse: duration,
  },
  keepMax: {
    env: 'RELAY_KEEP_MAX',
    flag: '--keep-max <size>',
    help: 'maximum size of the journal',
    format: formatSize,
    parse: size,
  },
  tunnel: {
    env: 'RELAY_TUNNEL',
    flag: '--tunnel [url]',
    bareDefault: DEFAULT_TUNNEL,
    help: `smee channel or server (none set: ${DEFAULT_TUNNEL}), or new for another channel`,
    parse: (text) => (text === NEW_TUNNEL ? NEW_TUNNEL : privateAddress(text)),
  },
  sandboxPort: {
    env: 'RELAY_SANDBOX_PORT',
    flag: '--sandbox-port <n>',
    help: 'port of the sandbox, 0 for any free port',
    project: 'anything',
    parse: port,
  },
} as const satisfies Readonly<Record<string, OptionSpec>>

export type OptionName = keyof typeof OPTIONS
type Values = { [Name in OptionName]: ReturnType<(typeof OPTIONS)[Name]['parse']> }
/** What is set, by the name of the setting. */
export type GivenValues = Partial<Values>
/** The settings, with the defaults of what nothing sets. */
export type OptionValues = GivenValues & Pick<Values, keyof typeof DEFAULTS | 'home'>

export function isOptionName(name: string): name is OptionName {
  return Object.hasOwn(OPTIONS, name)
}

/** In the order in which they are shown. */
export const OPTION_NAMES: readonly OptionName[] = Object.keys(OPTIONS).filter(isOptionName)

/** The specification without the exact types of one setting. */
export function specOf(name: OptionName): OptionSpec {
  return OPTIONS[name]
}

/** Every variable that is read for a setting: its own, and where it can be in a file the one that names it. */
export function variablesOf(name: OptionName): string[] {
  const { env, secret, file = secret } = specOf(name)
  return file ? [env, `${env}_FILE`] : [env]
}

/** A value as a user would write it: a duration or a size with its unit. */
export function formatValue(
  name: OptionName,
  value: Values[OptionName],
): string | number | readonly string[] {
  const { format } = specOf(name)
  return format && typeof value === 'number' ? format(value) : value
}

/** The default, as help shows it; undefined when there is none. */
export function defaultText(name: OptionName): string | undefined {
  const fixed: Readonly<Record<string, string | number>> = DEFAULTS
  const value = fixed[name]
  return specOf(name).defaultText ?? (value === undefined ? undefined : String(formatValue(name, value)))
}
