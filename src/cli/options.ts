import {
  DEFAULT_MAX_BODY,
  DEFAULT_PORT,
  DEFAULT_SANDBOX_PORT,
  DEFAULT_TUNNEL,
  ON_DUPLICATE,
  LARGEST_MAX_BODY,
  PROVIDER_NAMES,
  STORE_KINDS,
} from '../base/settings.js'
import {
  anyText,
  duration,
  formatSize,
  lines,
  size,
  hostNames,
  matching,
  oneOf,
  pageAddress,
  port,
  userId,
  privateAddress,
  webAddress,
  wholeNumber,
} from './parsers.js'
import { formatDuration } from '../base/time.js'
import { parseExec, parseForward, withoutSecrets } from '../dispatch/route.js'
import { parseMatch } from '../journal/match.js'

/** More at once than a program on the same machine is likely to answer faster. */
const MAX_CONCURRENCY = 64

/**
 * One setting: where it may be given and how its text is read. `parse` throws an Error whose message completes
 * "<name>: …"; it never repeats a secret.
 */
export interface OptionRow<Value> {
  readonly env: string
  readonly flag?: string
  /** What the flag means without a value. */
  readonly bare?: string
  readonly help: string
  /** What it is when nobody sets it. */
  readonly default?: string
  /** The same in words, where it is no fixed text. */
  readonly otherwise?: string
  /** All there is to choose from. */
  readonly choices?: readonly string[]
  /** Given again for each; one a line in the environment, a list in files. */
  readonly list?: true
  /** How a value is written, where that is not how it is kept. */
  readonly format?: (value: number) => string
  /** How a value is shown, where it may hold a password. */
  readonly mask?: (text: string) => string
  /** Never taken from the command line, never printed; also read from the file that `<env>_FILE` names. */
  readonly secret?: true
  /** Whether a project's relay.json may set it, and to what: a checkout's author is not always a friend. */
  readonly project?: 'anything' | 'this machine'
  readonly parse: (text: string) => Value
}

const row = <Value>(option: OptionRow<Value>): OptionRow<Value> => option

/** Every setting there is. Flags, environment, files, help, completion and `relay config` all come from here. */
export const OPTIONS = {
  profile: row({
    env: 'RELAY_PROFILE',
    flag: '--profile <name>',
    help: 'named set of settings and data; sandbox with --sandbox',
    default: 'default',
    project: 'anything',
    parse: matching(
      /^(?!\.)[A-Za-z0-9._-]{1,64}$/,
      '1–64 letters, digits, ".", "_" or "-", not starting with "."',
    ),
  }),
  home: row({
    env: 'RELAY_HOME',
    help: "folder of all profiles' data",
    otherwise: "the platform's own",
    parse: anyText,
  }),
  user: row({
    env: 'RELAY_USER',
    flag: '--user <id>',
    help: 'who acts',
    otherwise: 'your name on this machine',
    parse: userId,
  }),
  provider: row({
    env: 'RELAY_PROVIDER',
    flag: '--provider <name>',
    help: `code host: ${PROVIDER_NAMES.join(', ')}`,
    default: 'github',
    choices: PROVIDER_NAMES,
    project: 'anything',
    parse: oneOf(PROVIDER_NAMES),
  }),
  providerUrl: row({
    env: 'RELAY_PROVIDER_URL',
    flag: '--provider-url <url>',
    help: "code host's web address",
    otherwise: 'https://github.com for github',
    project: 'anything',
    parse: webAddress,
  }),
  clientId: row({ env: 'RELAY_CLIENT_ID', help: 'OAuth client id', project: 'anything', parse: anyText }),
  clientSecret: row({
    env: 'RELAY_CLIENT_SECRET',
    help: 'OAuth client secret',
    secret: true,
    parse: anyText,
  }),
  webhookSecret: row({
    env: 'RELAY_WEBHOOK_SECRET',
    help: 'webhook secret',
    otherwise: 'one made at first start',
    secret: true,
    parse: anyText,
  }),
  webhookSecretPrevious: row({
    env: 'RELAY_WEBHOOK_SECRET_PREVIOUS',
    help: 'also accepted, while a new secret is introduced',
    secret: true,
    parse: anyText,
  }),
  port: row({
    env: 'RELAY_PORT',
    flag: '--port <number>',
    help: 'port to listen on, 0 for any',
    default: String(DEFAULT_PORT),
    project: 'anything',
    parse: port,
  }),
  host: row({
    env: 'RELAY_HOST',
    flag: '--host <address>',
    help: 'address to listen on',
    default: '127.0.0.1',
    parse: matching(/^[A-Za-z0-9.:_-]{1,255}$/, 'a host name or an IP address, without brackets or port'),
  }),
  allowHost: row({
    env: 'RELAY_ALLOWED_HOSTS',
    flag: '--allow-host <names>',
    help: 'further Host names to answer to, separated by commas',
    parse: hostNames,
  }),
  publicUrl: row({
    env: 'RELAY_PUBLIC_URL',
    flag: '--public-url <url>',
    help: 'where this service is reached; makes the redirect URI',
    otherwise: 'the address it listens on',
    parse: webAddress,
  }),
  baseUrl: row({
    env: 'RELAY_BASE_URL',
    flag: '--base-url <url>',
    help: 'application to return to after signing in; else BASE_URL',
    otherwise: 'the public address',
    project: 'this machine',
    parse: pageAddress,
  }),
  store: row({
    env: 'RELAY_STORE',
    flag: '--store <kind>',
    help: `where data is kept: ${STORE_KINDS.join(', ')}`,
    default: 'file',
    choices: STORE_KINDS,
    parse: oneOf(STORE_KINDS),
  }),
  maxBody: row({
    env: 'RELAY_MAX_BODY',
    flag: '--max-body <bytes>',
    help: `largest webhook body, up to ${LARGEST_MAX_BODY}`,
    default: String(DEFAULT_MAX_BODY),
    project: 'anything',
    parse: wholeNumber(1, LARGEST_MAX_BODY),
  }),
  tokenTtl: row({
    env: 'RELAY_TOKEN_TTL',
    help: 'how long a token lives when the code host does not say',
    default: '30d',
    format: formatDuration,
    parse: duration,
  }),
  forward: row({
    env: 'RELAY_FORWARD',
    flag: '--forward <[match=]url>',
    help: 'hand deliveries on to this address; again for more',
    list: true,
    project: 'this machine',
    mask: withoutSecrets,
    parse: lines(parseForward),
  }),
  exec: row({
    env: 'RELAY_EXEC',
    flag: '--exec <[match=]command>',
    help: 'run this command for deliveries, their payload on its stdin; again for more',
    list: true,
    project: 'anything',
    parse: lines(parseExec),
  }),
  ignore: row({
    env: 'RELAY_IGNORE',
    flag: '--ignore <match>',
    help: 'hand these on to nobody; again for more',
    list: true,
    project: 'anything',
    parse: lines(parseMatch),
  }),
  concurrency: row({
    env: 'RELAY_CONCURRENCY',
    flag: '--concurrency <number>',
    help: 'deliveries handed on to one target at once; 1 keeps their order',
    default: '1',
    project: 'anything',
    parse: wholeNumber(1, MAX_CONCURRENCY),
  }),
  onDuplicate: row({
    env: 'RELAY_ON_DUPLICATE',
    flag: '--on-duplicate <rule>',
    help: `hand a repeated delivery on again: ${ON_DUPLICATE.join(', ')}`,
    default: 'if-failed',
    choices: ON_DUPLICATE,
    project: 'anything',
    parse: oneOf(ON_DUPLICATE),
  }),
  keep: row({
    env: 'RELAY_KEEP',
    flag: '--keep <duration>',
    help: 'how long deliveries stay in the journal',
    default: '7d',
    format: formatDuration,
    parse: duration,
  }),
  keepMax: row({
    env: 'RELAY_KEEP_MAX',
    flag: '--keep-max <size>',
    help: 'how much the journal may hold',
    default: '1GiB',
    format: formatSize,
    parse: size,
  }),
  tunnel: row({
    env: 'RELAY_TUNNEL',
    flag: '--tunnel [url]',
    bare: DEFAULT_TUNNEL,
    help: `also take deliveries from this smee channel, or a new one on this server, ${DEFAULT_TUNNEL} where none is named`,
    parse: privateAddress,
  }),
  sandboxPort: row({
    env: 'RELAY_SANDBOX_PORT',
    flag: '--sandbox-port <number>',
    help: 'port of the sandbox, 0 for any',
    default: String(DEFAULT_SANDBOX_PORT),
    project: 'anything',
    parse: port,
  }),
} as const

export type OptionName = keyof typeof OPTIONS
export type OptionValues = { [Name in OptionName]?: ReturnType<(typeof OPTIONS)[Name]['parse']> }

export function isOptionName(name: string): name is OptionName {
  return Object.hasOwn(OPTIONS, name)
}

/** In the order in which people are shown them. */
export const OPTION_NAMES: readonly OptionName[] = Object.keys(OPTIONS).filter(isOptionName)

/** A setting's line of help, with what it is when nobody sets it. */
export function optionHelp(name: OptionName): string {
  const { help, default: value, otherwise = value }: OptionRow<unknown> = OPTIONS[name]
  return otherwise === undefined ? help : `${help} (default: ${otherwise})`
}
