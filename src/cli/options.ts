import {
  DEFAULT_MAX_BODY,
  DEFAULT_TOKEN_TTL,
  LARGEST_MAX_BODY,
  PROVIDER_NAMES,
  STORE_KINDS,
} from '../base/settings.js'
import { parseDuration } from '../base/time.js'

/**
 * One setting: where it may be given and how its text is read. `parse` throws an Error whose message completes
 * "<name>: …"; it never repeats a secret.
 */
export interface OptionRow<Value> {
  readonly env: string
  readonly flag?: string
  readonly help: string
  /** Never taken from the command line, never printed; also read from the file that `<env>_FILE` names. */
  readonly secret?: true
  readonly parse: (text: string) => Value
}

const row = <Value>(option: OptionRow<Value>): OptionRow<Value> => option

/** Every setting there is. Flags, environment, help and reading all come from here. */
export const OPTIONS = {
  profile: row({
    env: 'RELAY_PROFILE',
    flag: '--profile <name>',
    help: 'named set of settings and data (default: default; sandbox with --sandbox)',
    parse: matching(
      /^(?!\.)[A-Za-z0-9._-]{1,64}$/,
      '1–64 letters, digits, ".", "_" or "-", not starting with "."',
    ),
  }),
  home: row({ env: 'RELAY_HOME', help: "folder of all profiles' data", parse: (text) => text }),
  provider: row({
    env: 'RELAY_PROVIDER',
    flag: '--provider <name>',
    help: 'code host: github, gitea or sandbox (default: github)',
    parse: oneOf(PROVIDER_NAMES),
  }),
  providerUrl: row({
    env: 'RELAY_PROVIDER_URL',
    flag: '--provider-url <url>',
    help: "code host's web address (default for github: https://github.com)",
    parse: webAddress,
  }),
  clientId: row({ env: 'RELAY_CLIENT_ID', help: 'OAuth client id', parse: (text) => text }),
  clientSecret: row({
    env: 'RELAY_CLIENT_SECRET',
    help: 'OAuth client secret',
    secret: true,
    parse: (text) => text,
  }),
  webhookSecret: row({
    env: 'RELAY_WEBHOOK_SECRET',
    help: 'webhook secret (default: one made at first start)',
    secret: true,
    parse: (text) => text,
  }),
  webhookSecretPrevious: row({
    env: 'RELAY_WEBHOOK_SECRET_PREVIOUS',
    help: 'also accepted, while a new secret is introduced',
    secret: true,
    parse: (text) => text,
  }),
  port: row({
    env: 'RELAY_PORT',
    flag: '--port <number>',
    help: 'port to listen on, 0 for any (default: 8787)',
    parse: port,
  }),
  host: row({
    env: 'RELAY_HOST',
    flag: '--host <address>',
    help: 'address to listen on (default: 127.0.0.1)',
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
    parse: webAddress,
  }),
  baseUrl: row({
    env: 'RELAY_BASE_URL',
    flag: '--base-url <url>',
    help: 'application to return to after signing in; else BASE_URL (default: the public address)',
    parse: webAddress,
  }),
  store: row({
    env: 'RELAY_STORE',
    flag: '--store <kind>',
    help: 'file or memory (default: file)',
    parse: oneOf(STORE_KINDS),
  }),
  maxBody: row({
    env: 'RELAY_MAX_BODY',
    flag: '--max-body <bytes>',
    help: `largest webhook body (default: ${DEFAULT_MAX_BODY}, at most ${LARGEST_MAX_BODY})`,
    parse: wholeNumber(1, LARGEST_MAX_BODY),
  }),
  tokenTtl: row({
    env: 'RELAY_TOKEN_TTL',
    help: `how long a token lives when the code host does not say (default: ${DEFAULT_TOKEN_TTL / 86_400_000}d)`,
    parse: duration,
  }),
  sandboxPort: row({
    env: 'RELAY_SANDBOX_PORT',
    flag: '--sandbox-port <number>',
    help: 'port of the sandbox, 0 for any (default: 8788)',
    parse: port,
  }),
} as const

export type OptionName = keyof typeof OPTIONS
export type OptionValues = { [Name in OptionName]?: ReturnType<(typeof OPTIONS)[Name]['parse']> }

function oneOf<Name extends string>(names: readonly Name[]): (text: string) => Name {
  return (text) => {
    const found = names.find((name) => name === text)
    if (found === undefined) throw new Error(`must be one of ${names.join(', ')}`)
    return found
  }
}

function matching(pattern: RegExp, wanted: string): (text: string) => string {
  return (text) => {
    if (!pattern.test(text)) throw new Error(`must be ${wanted}`)
    return text
  }
}

function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= least && value <= most)) throw new Error(`must be a whole number from ${least} to ${most}`)
    return value
  }
}

function port(text: string): number {
  return wholeNumber(0, 65_535)(text)
}

function duration(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw new Error('must be a duration such as 12h or 30d')
  return ms
}

/** An absolute http(s) address; what comes back has no trailing slash. */
function webAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    throw new Error('must be an absolute http:// or https:// address')
  if (url.username || url.password) throw new Error('must not hold a user name or password')
  return url.href.replace(/\/+$/, '')
}

function hostNames(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  if (names.some((name) => !/^[A-Za-z0-9._-]{1,255}$/.test(name)))
    throw new Error('must be host names, separated by commas')
  return names
}
