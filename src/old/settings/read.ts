import path from 'node:path'
import { RelayError } from '../../base/errors.js'
import type { Log } from '../../base/log.js'
import { DEFAULTS } from '../../base/settings.js'
import { isSharedAddress, splitPassword } from '../../base/shared-store.js'
import type { Context } from '../context.js'
import { withDefaults } from './complete.js'
import { dotenvSource, readDotenv } from './dotenv.js'
import { bareBaseUrlSource, given, variableSource, type Place } from './environment.js'
import { readSettingsFile, type SettingsFile, userFile } from './file.js'
import { OPTION_NAMES, type GivenValues, type OptionName, type OptionValues, specOf } from './options.js'
import { isOfFolder, type Given, type Origin, type Origins, type Source } from './origin.js'
import { findProjectFile } from './project.js'
import { createTrust, type Trust } from './trust.js'

/** Flags as commander gives them: by option name, as text, or true for one without a value. */
export type Flags = Partial<Record<OptionName, string | readonly string[] | true>> & {
  /** Selects the profile `sandbox`, unless a flag or the environment names another. */
  readonly sandbox?: boolean
}

/** Every setting, and where those that are not defaults came from. */
export interface LoadedOptions {
  readonly options: OptionValues
  readonly origins: Origins
}

/** The places where settings can be set, open. Settings that belong to a profile are read once the profile is known. */
export interface SettingsSources {
  /** The data folder. */
  readonly home: string
  /** The profile that the settings name; undefined when none does. */
  readonly profile: string | undefined
  /** The profiles that the user's own file has settings for. */
  readonly profiles: readonly string[]
  /**
   * Every setting, for the profile given or else the one that is named or the default. To be called once: the file of a
   * secret can be a pipe.
   */
  read(profile?: string): LoadedOptions
}

/**
 * Reads every setting: flag, else environment, else `.env` in the working folder, else the project's relay.json, else
 * the user's config.json (its section for the profile first), else the default. Files of other users are ignored with a
 * warning.
 * @throws RelayError `settings` that names the place, the setting, and what it must be; never the value of a secret.
 */
export function readOptions(context: Context, flags: Flags, log: Log): LoadedOptions {
  return openSources(context, flags, log).read()
}

/** Opens the places that {@link readOptions} reads. @throws RelayError as that. */
export function openSources(context: Context, flags: Flags, log: Log): SettingsSources {
  const trust = createTrust(context.env)
  const own = ownSources(context, flags, log, trust)
  const project = readProjectFile(context.cwd, trust, log)
  const user = readSettingsFile(userFile(context), 'user')
  const common = [...own, ...commonOf(project), ...commonOf(user)]
  const { profile: named, home } = toOptions(findValues(common, [], ['profile', 'home'])).options
  return {
    home: path.resolve(withDefaults(home === undefined ? {} : { home }).home),
    profile: named,
    profiles: user?.profiles ?? [],
    read(profile = named ?? DEFAULTS.profile) {
      const ofProfile = user?.profile(profile)
      const users = [...(ofProfile ? [ofProfile] : []), ...commonOf(user)]
      const found = findValues(
        [...own, ...commonOf(project), ...users, bareFlagSource(flags)],
        users,
        OPTION_NAMES,
      )
      const { options, origins } = toOptions(found)
      return { options: withDefaults({ ...options, profile }), origins }
    },
  }
}

function findValues(
  sources: readonly Source[],
  users: readonly Source[],
  names: readonly OptionName[],
): Map<OptionName, Given> {
  const found = new Map<OptionName, Given>()
  for (const name of names) {
    const value = firstOf(sources, name)
    if (value) found.set(name, usersOwn(value, firstOf(users, name)))
  }
  return found
}

function toOptions(found: Map<OptionName, Given>): { options: GivenValues; origins: Origins } {
  const options: Record<string, unknown> = {}
  const origins: Record<string, Origin> = {}
  for (const [name, { value, origin }] of found) {
    options[name] = value
    origins[name] = origin
  }
  return splitStore({ options, origins })
}

/**
 * Takes the password out of the address of a shared store: the address is shown and remembered.
 * @throws RelayError `settings` for a password in a flag, which every user of this machine can read.
 */
function splitStore(read: { options: GivenValues; origins: Origins }): typeof read {
  const { options, origins } = read
  if (options.store === undefined || !isSharedAddress(options.store)) return read
  const { address: store, password } = splitPassword(options.store)
  if (password === '') return { options: { ...options, store }, origins }
  if (origins.store?.kind === 'flag')
    throw new RelayError(
      'settings',
      `${origins.store.text}: a password in the arguments can be read by every user of this machine. Change it, then set PGPASSWORD, ~/.pgpass or RELAY_STORE_FILE`,
    )
  const given = { options: { ...options, store, storePassword: password }, origins }
  return origins.store ? { ...given, origins: { ...origins, storePassword: origins.store } } : given
}

/** A value from the folder that the user's own file has too counts as the user's. */
function usersOwn(value: Given, own: Given | undefined): Given {
  return own && isOfFolder(value.origin) && own.value === value.value ? own : value
}

function readProjectFile(cwd: string, trust: Trust, log: Log): SettingsFile | undefined {
  const file = findProjectFile(cwd, trust, log)
  return file === undefined ? undefined : readSettingsFile(file, 'project', trust.accept(file))
}

/** The sources for this one start, in order of precedence. */
function ownSources(context: Context, flags: Flags, log: Log, trust: Trust): Source[] {
  const { env, cwd } = context
  const environment: Place = { variables: env, kind: 'environment', cwd }
  const variables = readDotenv(cwd, { trust, log, userFile: userFile(context) })
  const dotenv: Place = { variables, kind: 'dotenv', cwd }
  return [
    flagSource(flags),
    variableSource(environment),
    dotenvSource(dotenv),
    bareBaseUrlSource(environment, log),
    bareBaseUrlSource(dotenv, log),
    flags.sandbox ? sandboxProfile : () => undefined,
  ]
}

function flagSource(flags: Flags): Source {
  return (name) => {
    const text = flags[name]
    if (text === undefined || text === true) return undefined
    return given([text].flat().join('\n'), flagOrigin(name), specOf(name).parse)
  }
}

/** Flags that were given without a value: any other place wins. */
function bareFlagSource(flags: Flags): Source {
  return (name) => {
    const { bareDefault, parse } = specOf(name)
    if (flags[name] !== true || bareDefault === undefined) return undefined
    return given(bareDefault, flagOrigin(name), parse)
  }
}

function flagOrigin(name: OptionName): Origin {
  const { flag, env } = specOf(name)
  return { kind: 'flag', text: flag?.split(' ')[0] ?? env }
}

/** Files cannot name the sandbox's profile: the sandbox deletes its tokens when it starts. */
const sandboxProfile: Source = (name) =>
  name === 'profile' ? { value: 'sandbox', origin: { kind: 'flag', text: '--sandbox' } } : undefined

function commonOf(file: SettingsFile | undefined): Source[] {
  return file ? [file.common] : []
}

function firstOf(sources: readonly Source[], name: OptionName): Given | undefined {
  for (const source of sources) {
    const found = source(name)
    if (found) return found
  }
  return undefined
}

/**
 * Refuses to send a client secret to an address that only the working folder names: the next version of a checkout could
 * name another address, which would get the secret at the next sign-in.
 * @throws RelayError `settings` that names how to allow it.
 */
export function checkSecretsPlace({ clientSecret, providerUrl }: Origins): void {
  if (!clientSecret || !providerUrl || !isOfFolder(providerUrl)) return
  throw new RelayError(
    'settings',
    `${clientSecret.text} is not sent to an address that only this folder names (${providerUrl.text}). Set the address yourself: with --provider-url, with RELAY_PROVIDER_URL in the environment, or as providerUrl in your config.json`,
  )
}
