import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseEnv } from 'node:util'
import envPaths from 'env-paths'
import { RelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import { Secret } from '../base/secret.js'
import { DEFAULT_MAX_BODY, DEFAULT_PORT, DEFAULT_TOKEN_TTL, type Settings } from '../base/settings.js'
import type { Context } from './context.js'
import { OPTIONS, type OptionName, type OptionValues } from './options.js'
import { readWebhookSecret } from './webhook-secret.js'

type Source = (env: string) => string | undefined

/** Flags as commander gives them: by option name, as text. */
export type Flags = Partial<Record<OptionName, string>>

/**
 * Reads every option: flag, else environment, else `.env` in the working folder. An empty text counts as not given.
 * @throws RelayError `settings` that names the option and what it must be, never the value of a secret.
 */
export function readOptions(context: Context, flags: Flags, log: Log): OptionValues {
  const dotenv = readDotenv(context.cwd)
  const sources: Source[] = [(name) => context.env[name], (name) => dotenv[name]]
  const values: Record<string, unknown> = {}
  for (const name of optionNames()) {
    const { env, flag, secret, parse } = OPTIONS[name]
    const given = flags[name]
    const text =
      given ?? firstOf(sources, (source) => source(env) || (secret && fromFile(source, env)) || undefined)
    if (text !== undefined)
      values[name] = parsed(given === undefined ? env : (flag?.split(' ')[0] ?? env), text, parse)
  }
  values['baseUrl'] ??= bareBaseUrl(sources, log)
  return values
}

/**
 * Makes the settings of a profile complete and checks that they agree.
 * @throws RelayError `settings` saying what to set.
 */
export function completeSettings(options: OptionValues): Settings {
  const profile = options.profile ?? 'default'
  const folder = profileFolder(options)
  const provider = options.provider ?? 'github'
  const store = options.store ?? 'file'
  const { clientId, clientSecret } = options
  if ((clientId === undefined) !== (clientSecret === undefined)) {
    throw new RelayError(
      'settings',
      'RELAY_CLIENT_ID and RELAY_CLIENT_SECRET go together: set both or neither',
    )
  }
  return {
    profile,
    folder,
    provider,
    providerUrl: providerUrl(provider, options.providerUrl),
    oauthClient: clientId && clientSecret ? { id: clientId, secret: new Secret(clientSecret) } : undefined,
    webhookSecrets: {
      current: options.webhookSecret ? new Secret(options.webhookSecret) : readWebhookSecret(folder, store),
      previous: options.webhookSecretPrevious ? new Secret(options.webhookSecretPrevious) : undefined,
    },
    host: options.host ?? '127.0.0.1',
    port: options.port ?? DEFAULT_PORT,
    allowedHosts: options.allowHost ?? [],
    publicUrl: options.publicUrl,
    baseUrl: options.baseUrl,
    store,
    maxBody: options.maxBody ?? DEFAULT_MAX_BODY,
    tokenTtl: options.tokenTtl ?? DEFAULT_TOKEN_TTL,
  }
}

/** The folder that holds all data of the profile the options name. */
export function profileFolder(options: OptionValues): string {
  return path.resolve(options.home ?? envPaths('relay', { suffix: '' }).data, options.profile ?? 'default')
}

function providerUrl(provider: Settings['provider'], url: string | undefined): string {
  if (url === undefined && provider === 'github') return 'https://github.com'
  if (url === undefined) {
    throw new RelayError(
      'settings',
      `RELAY_PROVIDER_URL is not set: where is your ${provider}? For example https://git.example.com`,
    )
  }
  return url
}

function readDotenv(folder: string): Record<string, string | undefined> {
  const file = path.join(folder, '.env')
  try {
    return parseEnv(readFileSync(file, 'utf8'))
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return {}
    throw new RelayError('settings', `${file} cannot be read`, { cause })
  }
}

/** The secret in the file that `<env>_FILE` names, less one line end: editors and `echo` add one. */
function fromFile(source: Source, env: string): string | undefined {
  const file = source(`${env}_FILE`)
  if (!file) return undefined
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch (cause) {
    throw new RelayError('settings', `${env}_FILE: ${file} cannot be read`, { cause })
  }
}

/** BASE_URL belongs to everyone (test runners set it to "/"), so one that is no web address is not ours. */
function bareBaseUrl(sources: readonly Source[], log: Log): string | undefined {
  const text = firstOf(sources, (source) => source('BASE_URL') || undefined)
  if (text === undefined) return undefined
  try {
    return OPTIONS.baseUrl.parse(text)
  } catch {
    log.warn(
      'BASE_URL is ignored: it is no absolute http:// or https:// address (RELAY_BASE_URL sets it for relay alone)',
    )
    return undefined
  }
}

function parsed(name: string, text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text)
  } catch (cause) {
    throw new RelayError('settings', `${name}: ${cause instanceof Error ? cause.message : 'bad value'}`)
  }
}

function firstOf<Item, Value>(
  items: readonly Item[],
  find: (item: Item) => Value | undefined,
): Value | undefined {
  for (const item of items) {
    const found = find(item)
    if (found !== undefined) return found
  }
  return undefined
}

function optionNames(): OptionName[] {
  return Object.keys(OPTIONS).filter((name): name is OptionName => name in OPTIONS)
}
