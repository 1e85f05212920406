import { homedir } from 'node:os'
import path from 'node:path'
import { parseEnv } from 'node:util'
import envPaths from 'env-paths'
import { RelayError } from '../../base/errors.js'
import { isLoopback } from '../../base/address.js'
import { DEFAULTS } from '../../base/settings.js'
import { isSharedAddress, splitPassword } from '../../base/shared-store.js'
import { plain, suggest } from '../../base/text.js'
import { parseForward } from '../../dispatch/routes.js'
import { isObject } from '../../json/parse.js'
import type { Flags, Shell } from '../command.js'
import { type FolderFiles, folderFiles, readJsonObject, readSecretFile, readSmallFile } from './files.js'
import {
  GITHUB_URL,
  type GivenValues,
  isSettingName,
  keysOf,
  type Kind,
  SETTING_NAMES,
  type SettingName,
  settingOf,
  userFile,
  type Values,
  variablesOf,
} from './table.js'

/**
 * Where a value came from. `text` is for messages: `--port`, `RELAY_PORT`, `RELAY_PORT in .env`, `port in /path/relay.json`. Nothing
 * of a default.
 */
export interface Origin {
  readonly kind: 'flag' | 'environment' | 'dotenv' | 'project' | 'user' | 'setup' | 'profile'
  readonly text: string
}

export type Origins = { readonly [Name in SettingName]?: Origin }

/** Every setting, and where those that are not defaults came from. */
export interface Loaded {
  readonly values: Values
  readonly origins: Origins
}

/** The places where settings can be set, open. Settings that belong to a profile are read once the profile is known. */
export interface OpenSettings {
  /** The data folder. */
  readonly home: string
  /** The profile that the settings name; undefined when none does. */
  readonly profile: string | undefined
  /** The profiles that the user's own file has settings for. */
  readonly profiles: readonly string[]
  /**
   * Every setting or those with `names`, for the profile given or else the one that is named or the default. Each is to be read once: the
   * file of a secret can be a pipe.
   */
  read(profile?: string, names?: readonly SettingName[]): Loaded
}

interface Given {
  readonly value: unknown
  readonly origin: Origin
}

/** One place where settings can be set. */
type Source = (name: SettingName) => Given | undefined
type Variables = Readonly<Record<string, string | undefined>>

/** Whether it is from a file of the working folder or its project, whose author can be anyone. */
export function isOfFolder({ kind }: Origin): boolean {
  return kind === 'project' || kind === 'dotenv'
}

/**
 * Opens the places where a process can have settings, in the order of `join`. Files of other users are ignored with a warning.
 * @throws RelayError `settings` that names the place, the setting, and what it must be; never a value
 */
export function openSettings(shell: Shell, flags: Flags): OpenSettings {
  const files = folderFiles(shell)
  const own = [
    flagSource(flags),
    ...variableSources(shell, files),
    flags.sandbox ? sandboxProfile : () => undefined,
  ]
  const projectFile = files.project(shell.out.log)
  const project = projectFile === undefined ? undefined : readSettingsFile(projectFile, 'project')
  const user = readSettingsFile(userFile(shell), 'user')
  const common = [...own, ...commonOf(project), ...commonOf(user)]
  const { profile: named, home } = loaded(common, [], ['profile', 'home']).values
  return {
    home: path.resolve(home ?? defaultHome()),
    profile: named,
    profiles: user ? [...user.profiles.keys()] : [],
    read(profile = named ?? DEFAULTS.profile, names = SETTING_NAMES) {
      const ofProfile = user?.profiles.get(profile)
      const users = [...(ofProfile ? [ofProfile] : []), ...commonOf(user)]
      const sources = [...own, ...commonOf(project), ...users, bareFlagSource(flags)]
      const { values, origins } = loaded(sources, users, names)
      return { values: withDefaults({ ...values, profile }), origins }
    },
  }
}

/** Adds the defaults of what is not set. */
export function withDefaults(given: GivenValues): Values {
  const values = { ...DEFAULTS, home: defaultHome(), ...given }
  return values.provider === 'github' ? { providerUrl: GITHUB_URL, ...values } : values
}

function defaultHome(): string {
  return envPaths('relay', { suffix: '' }).data
}

/**
 * Refuses to send a client secret to an address that only the working folder names: the next version of a checkout could
 * name another address, which would get the secret at the next sign-in.
 * @throws RelayError `settings` that names how to allow it
 */
export function checkSecretsPlace({ clientSecret, providerUrl }: Origins): void {
  if (!clientSecret || !providerUrl || !isOfFolder(providerUrl)) return
  throw new RelayError(
    'settings',
    `${clientSecret.text} is not sent to an address that only this folder names (${providerUrl.text}). Set the address yourself: with --provider-url, with RELAY_PROVIDER_URL in the environment, or as providerUrl in your config.json`,
  )
}

/** What the first source that has it says of each setting. What the folder says and the user's own file too counts as the user's. */
function loaded(
  sources: readonly Source[],
  users: readonly Source[],
  names: readonly SettingName[],
): { values: GivenValues; origins: Origins } {
  const values: Record<string, unknown> = {}
  const origins: Record<string, Origin> = {}
  for (const name of names) {
    const found = firstOf(sources, name)
    if (!found) continue
    const own = isOfFolder(found.origin) ? firstOf(users, name) : undefined
    values[name] = found.value
    origins[name] = own && own.value === found.value ? own.origin : found.origin
  }
  return splitStore(values, origins)
}

function firstOf(sources: readonly Source[], name: SettingName): Given | undefined {
  for (const source of sources) {
    const found = source(name)
    if (found) return found
  }
  return undefined
}

/**
 * Takes the password out of the address of a shared store: the address is shown and remembered.
 * @throws RelayError `settings` for a password in a flag, which every user of this machine can read
 */
function splitStore(values: GivenValues, origins: Origins): { values: GivenValues; origins: Origins } {
  const { store: place } = origins
  if (values.store === undefined || !place || !isSharedAddress(values.store)) return { values, origins }
  const { address: store, password } = splitPassword(values.store)
  if (password === '') return { values: { ...values, store }, origins }
  if (place.kind === 'flag')
    throw new RelayError(
      'settings',
      `${place.text}: a password in the arguments can be read by every user of this machine. Change it, then set PGPASSWORD, ~/.pgpass or RELAY_STORE_FILE`,
    )
  return {
    values: { ...values, store, storePassword: password },
    origins: { ...origins, storePassword: place },
  }
}

function flagSource(flags: Flags): Source {
  return (name) => {
    const text = flags[name]
    return text === undefined || text === true
      ? undefined
      : given(name, [text].flat().join('\n'), flagOrigin(name))
  }
}

/** Flags that were given without a value: any other place wins. */
function bareFlagSource(flags: Flags): Source {
  return (name) => {
    const { bareDefault } = settingOf(name)
    return flags[name] === true && bareDefault !== undefined
      ? given(name, bareDefault, flagOrigin(name))
      : undefined
  }
}

function flagOrigin(name: SettingName): Origin {
  const { flag, env } = settingOf(name)
  return { kind: 'flag', text: flag?.split(' ')[0] ?? env }
}

/** Files cannot name the sandbox's profile: the sandbox deletes its tokens when it starts. */
const sandboxProfile: Source = (name) =>
  name === 'profile' ? { value: 'sandbox', origin: { kind: 'flag', text: '--sandbox' } } : undefined

/** Parses a value; empty text counts as not set. @throws RelayError `settings` that names the origin, never the value */
function given(name: SettingName, text: string, origin: Origin): Given | undefined {
  if (text === '') return undefined
  try {
    return { value: settingOf(name).parse(text), origin }
  } catch (cause) {
    throw new RelayError('settings', `${origin.text}: ${reasonOf(cause)}`)
  }
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : 'invalid value'
}

// Variables

/** Those of the environment, those of `.env`, and of both the one that is everybody's. */
function variableSources(shell: Shell, files: FolderFiles): Source[] {
  const { env, cwd } = shell
  const dotenv = readDotenv(shell, files)
  return [
    variableSource(env, 'environment', cwd),
    variableSource(dotenv, 'dotenv', cwd),
    bareBaseUrl(env, 'environment', shell),
    bareBaseUrl(dotenv, 'dotenv', shell),
  ]
}

/**
 * Settings from variables. A secret, and an address that may hold one, can also be in the file that `<NAME>_FILE` names, relative to
 * `cwd`.
 */
function variableSource(variables: Variables, kind: 'environment' | 'dotenv', cwd: string): Source {
  return (name) => {
    const { env, secret, inFile = secret } = settingOf(name)
    const text = variables[env]
    const file = inFile && variables[`${env}_FILE`]
    const origin = originOf(text ? env : `${env}_FILE`, kind)
    const found = text
      ? given(name, text, origin)
      : file
        ? given(name, readSecretFile(path.resolve(cwd, file), origin.text), origin)
        : undefined
    const why = found && kind === 'dotenv' ? notThisMachine(name, found.value) : undefined
    if (why !== undefined) throw new RelayError('settings', `${originOf(env, kind).text}: ${why}`)
    return found
  }
}

function originOf(variable: string, kind: 'environment' | 'dotenv'): Origin {
  return { kind, text: kind === 'dotenv' ? `${variable} in .env` : variable }
}

/**
 * The setting in `BASE_URL`. Other programs use that variable too (test runners set it to "/"), so a value that relay cannot
 * use is ignored with a warning.
 */
function bareBaseUrl(variables: Variables, kind: 'environment' | 'dotenv', { out }: Shell): Source {
  const text = variables['BASE_URL']
  const origin = originOf('BASE_URL', kind)
  return (name) => {
    if (name !== 'baseUrl' || !text) return undefined
    try {
      const { value } = given(name, text, origin) ?? {}
      if (kind === 'environment' || notThisMachine(name, value) === undefined) return { value, origin }
    } catch {
      // Said below.
    }
    const valid = `absolute http:// or https:// address${kind === 'dotenv' ? ' on this machine' : ''}`
    const instead = kind === 'dotenv' ? 'RELAY_BASE_URL in the environment' : 'RELAY_BASE_URL'
    out.log.warn(`${origin.text} is ignored: it is no ${valid} (${instead} sets it for relay alone)`)
    return undefined
  }
}

/**
 * The variables of the working folder's `.env`. It can come with a checkout, so it may set only what `relay.json` may, and
 * secrets. Variables without `RELAY_` belong to other programs.
 * @throws RelayError `settings` naming the file, the variable, and where to set it instead
 */
function readDotenv(shell: Shell, files: FolderFiles): Variables {
  const file = path.join(shell.cwd, '.env')
  if (!files.isUsable(file, shell.out.log)) return {}
  const variables = parseEnv(readSmallFile(file) ?? '')
  for (const [variable, text] of Object.entries(variables)) {
    if (!text || !variable.startsWith('RELAY_')) continue
    const name = SETTING_NAMES.find((each) => variablesOf(each).includes(variable))
    const { project, secret, flag } = name ? settingOf(name) : {}
    if (project ?? secret) continue
    const elsewhere = `${variable} cannot be set by a project: set it in the environment`
    const ways = [flag && `with ${flag.split(' ')[0]}`, `as ${name} in ${userFile(shell)}`].filter(Boolean)
    if (name) throw new RelayError('settings', `${file}: ${[elsewhere, ...ways].join(', or ')}`)
    if (variable === 'RELAY_DEBUG') throw new RelayError('settings', `${file}: ${elsewhere}`)
    const near = didYouMean(variable, SETTING_NAMES.flatMap(variablesOf))
    throw new RelayError('settings', `${file}: ${variable} is not a setting${near}`)
  }
  return variables
}

// Files

/** A settings file whose keys and values were all checked. */
interface SettingsFile {
  readonly common: Source
  /** The settings of one profile, by its name. */
  readonly profiles: ReadonlyMap<string, Source>
}

interface Section {
  readonly kind: Kind
  readonly file: string
  /** Where in the file, for messages: '' or `profiles.work.`. */
  readonly prefix: string
}

/** Undefined when there is none. @throws RelayError `settings` that names the file, the key, and the closest valid key or what the value must be */
function readSettingsFile(file: string, kind: Kind): SettingsFile | undefined {
  const values = readJsonObject(file)
  if (!values) return undefined
  const { profiles = {}, ...common } = values
  if (kind === 'project' && 'profiles' in values)
    throw wrong(file, 'profiles', 'can only be set in your own config.json')
  if (!isObject(profiles)) throw wrong(file, 'profiles', 'must be an object of profiles')
  const sections = Object.entries(profiles).map(([name, section]) => {
    const prefix = `profiles.${name}`
    if (!isObject(section)) throw wrong(file, prefix, 'must be an object of settings')
    for (const key of ['profile', 'home'])
      if (key in section) throw wrong(file, `${prefix}.${key}`, 'cannot be set for one profile')
    return [name, readSection({ kind, file, prefix: `${prefix}.` }, section)] as const
  })
  return { common: readSection({ kind, file, prefix: '' }, common), profiles: new Map(sections) }
}

function commonOf(file: SettingsFile | undefined): Source[] {
  return file ? [file.common] : []
}

function readSection(section: Section, values: Readonly<Record<string, unknown>>): Source {
  const found = new Map(Object.entries(values).map(([key, value]) => readEntry(section, key, value)))
  return (name) => found.get(name)
}

function readEntry({ kind, file, prefix }: Section, key: string, value: unknown): [SettingName, Given] {
  const fail = (why: string): RelayError => wrong(file, prefix + key, why)
  const name = settingNamed(key)
  if (name === undefined) throw fail(`is not a setting${didYouMean(key, keysOf(kind))}`)
  const { project, env, flag, secret } = settingOf(name)
  if (kind === 'project' && !project) {
    const ways = [flag?.split(' ')[0], env, secret && `${env}_FILE`].filter(Boolean).join(' or ')
    throw fail(`cannot be set by a project: set it with ${ways}`)
  }
  if (secret && key === name) throw fail(`is a secret: name a file that holds it as ${name}File`)
  const origin: Origin = { kind, text: `${prefix}${key} in ${file}` }
  try {
    const parsed = parseValue(name, value, (text) => resolveFile(name, text, origin, file))
    const why = kind === 'project' ? notThisMachine(name, parsed) : undefined
    if (why !== undefined) throw fail(why)
    return [name, { value: parsed, origin }]
  } catch (cause) {
    throw cause instanceof RelayError ? cause : fail(reasonOf(cause))
  }
}

/** Numbers and lists can be JSON numbers and arrays. */
function parseValue(name: SettingName, value: unknown, resolve: (text: string) => string): unknown {
  const { list, parse } = settingOf(name)
  const text = Array.isArray(value)
    ? value.join(list ? '\n' : ',')
    : typeof value === 'number'
      ? String(value)
      : value
  if (typeof text !== 'string') throw new Error('must be a text, a number, or a list of texts')
  if (text === '') throw new Error('must not be empty: leave it out instead')
  const parsed = parse(resolve(text))
  const fits =
    typeof value === 'string' || (Array.isArray(value) ? Array.isArray(parsed) : typeof parsed === 'number')
  if (!fits) throw new Error('must be a text')
  return parsed
}

/** Reads a secret from its file. File names are relative to the settings file, or to the user's home (`~/`). */
function resolveFile(name: SettingName, text: string, origin: Origin, file: string): string {
  const { secret } = settingOf(name)
  if (!secret && name !== 'home') return text
  const full = path.resolve(path.dirname(file), text.replace(/^~(?=\/|$)/, homedir()))
  return secret ? readSecretFile(full, origin.text) : full
}

/** The setting of a key; a secret's key names the file that holds it. */
function settingNamed(key: string): SettingName | undefined {
  if (isSettingName(key)) return key
  const name = key.replace(/File$/, '')
  return isSettingName(name) && settingOf(name).secret ? name : undefined
}

function wrong(file: string, key: string, why: string): RelayError {
  return new RelayError('settings', `${file}: ${key} ${why}`)
}

/** Why a project's file may not set this: it may point some settings at this machine only. */
function notThisMachine(name: SettingName, value: unknown): string | undefined {
  const { project, list, env } = settingOf(name)
  if (project !== 'this machine') return undefined
  const addresses = [value].flat().map((text) => {
    const { target } = list ? parseForward(String(text)) : { target: undefined }
    return target?.kind === 'http' ? target.url : String(text)
  })
  return addresses.every((address) => isLoopback(new URL(address).hostname))
    ? undefined
    : `must be on this machine in a project's file: ${env} in the environment sets any other`
}

// Misspelt names

/** What other programs call settings. */
const MEANINGS: Readonly<Record<string, SettingName>> = {
  bind: 'host',
  command: 'exec',
  commands: 'exec',
  datadir: 'home',
  domain: 'publicUrl',
  exclude: 'ignore',
  hooksecret: 'webhookSecret',
  parallel: 'concurrency',
  redirecturl: 'baseUrl',
  retention: 'keep',
  routes: 'forward',
  secret: 'webhookSecret',
  smee: 'tunnel',
  target: 'forward',
  targets: 'forward',
}

/** Of the names, keys or variables of settings the one that was probably meant, by its meaning or its spelling. */
export function meantSetting(word: string, names: readonly string[]): string | undefined {
  const key = plain(word)
  const meaning = Object.hasOwn(MEANINGS, key) ? plain(MEANINGS[key] ?? '') : undefined
  // A key of a file can end in File.
  const meant = meaning === undefined ? undefined : names.find((name) => plain(name).startsWith(meaning))
  return meant ?? suggest(word, names)
}

/** ` (did you mean …?)`, or nothing. */
export function didYouMean(word: string, names: readonly string[]): string {
  const found = meantSetting(word, names)
  return found === undefined ? '' : ` (did you mean ${found}?)`
}
