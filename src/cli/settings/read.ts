import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { parseEnv } from 'node:util'
import envPaths from 'env-paths'
import { isLoopback } from '../../base/address.js'
import { HUB_PROFILE } from '../../base/command-line.js'
import { RelayError, isError } from '../../base/errors.js'
import { type Log, silentLog } from '../../base/log.js'
import { SOURCE_SECRET } from '../../base/secret-variables.js'
import { isSharedAddress, splitPassword } from '../../base/shared-store.js'
import { normalizeWord, suggest } from '../../base/text.js'
import { inspectPlace } from '../../base/trust.js'
import { readRoute } from '../../dispatch/route-object.js'
import { parseForward } from '../../dispatch/route-text.js'
import { variablesIn } from '../../dispatch/variables.js'
import { isObject } from '../../json/parse.js'
import type { Flags, Shell } from '../command.js'
import { folderFiles, readJsonObject, readSecretFile } from './files.js'
import { type GivenValues, PARSERS, type Values } from './parse.js'
import {
  DEFAULT_VALUES,
  PUBLIC_HOSTS,
  isSettingName,
  keysOf,
  meantBy,
  SETTING_NAMES,
  type SettingName,
  settingOf,
  userFile,
  variablesOf,
} from './table.js'
import { readText } from './text.js'

/** Origin of a value. `text` is for messages: `--port`, `RELAY_PORT in .env`, `port in /path/relay.json`. */
export interface Origin {
  readonly kind: 'flag' | 'environment' | 'dotenv' | 'project' | 'user' | 'setup' | 'profile'
  readonly text: string
}

export type Origins = { readonly [Name in SettingName]?: Origin }

/** A code host as settings name it, by either of two fields. */
export type NamedHost = Partial<Pick<Values, 'provider' | 'providerUrl'>>

/** Values of settings, and where each comes from. */
export interface SettingsWithOrigins {
  readonly values: Values
  readonly origins: Origins
}

/** All settings, with the origins of those that are not defaults. */
export interface LoadedSettings extends SettingsWithOrigins {
  /**
   * Code host of flags, the environment and the user's own file, regardless of the folder's files. Undefined for none.
   */
  readonly userHost: NamedHost | undefined
  /** Commands of the folder's files that `projectExec` left out, with their origin. */
  readonly leftOutExec?: { readonly count: number; readonly origin: Origin } | undefined
  /**
   * Profile of the environment and files, which another command line typed here uses without `--profile`. Undefined for
   * none.
   */
  readonly ambientProfile: string | undefined
}

export type OpenSettings = Awaited<ReturnType<typeof openSettings>>

interface Given {
  readonly value: unknown
  readonly origin: Origin
}

/** One place of settings. @throws RelayError `settings` for an invalid value */
type Source = (name: SettingName) => Promise<Given | undefined>
type Variables = Readonly<Record<string, string | undefined>>

/** True for a file of the working folder or its project, whose author can be anyone. */
export function isOfFolder({ kind }: Origin): boolean {
  return kind === 'project' || kind === 'dotenv'
}

/**
 * Opens the places of settings of a process, in the order of `joinSettings`. Files of other users are ignored with a
 * warning.
 * @throws RelayError `settings` that names the place, the setting, and the valid form, never a value; AbortError while
 * it waits for a pipe
 */
export async function openSettings(shell: Shell, flags: Flags) {
  const { out } = shell
  const files = folderFiles(shell, out.log)
  const places = await variablePlaces(shell, files.dotenv)
  const [ofUser, ...ofFolder] = places.map((place) => variableSource(shell, place))
  const own = [
    flagSource(flags),
    ...(ofUser ? [ofUser] : []),
    ...(flags.sandbox ? [sandboxProfile] : []),
    ...(flags.hub ? [hubProfile] : []),
    ...ofFolder,
    ...places.map((place) => bareBaseUrl(place, out.log)),
  ]
  const project = await readSettingsFile(shell, files.project, 'project')
  const user = await readSettingsFile(shell, userFile(shell), 'user')
  const common = [...own, project.common, user.common]
  const place = await loaded(common, [], ['profile', 'home'])
  const { profile: named, home = defaultHome() } = place.values
  const isFlag = place.origins.profile?.kind === 'flag'
  const others = isFlag
    ? await loaded(
        common.slice(1).filter((source) => source !== sandboxProfile && source !== hubProfile),
        [],
        ['profile'],
      )
    : place
  const { profile: ambientProfile } = others.values
  return {
    home: path.resolve(home),
    /** Named profile. Undefined if the settings name none. */
    profile: named,
    /** Profiles with settings in the user's own file. */
    profiles: [...user.profiles.keys()],
    /** Reads the settings for this profile, else the named one or the default. */
    async read(profile = named ?? DEFAULT_VALUES.profile, names = SETTING_NAMES): Promise<LoadedSettings> {
      const section = user.profiles.get(profile)
      // The section is the user's own, but the folder has chosen it, and so its commands.
      const chosen = profile === named ? place.origins.profile : undefined
      const ofSection = section && chosen && isOfFolder(chosen) ? chosenBy(chosen, section) : section
      const users = [...(ofSection ? [ofSection] : []), user.common]
      const sources = [...own, project.common, ...users, flagSource(flags, true)]
      const isWhole = flags.projectExec !== false
      const { values, origins } = await loaded(
        isWhole ? sources : sources.map(withoutFolderExec),
        users,
        names,
      )
      const leftOutExec = isWhole ? undefined : await folderExec(sources)
      const userHost = await hostOfUser(sources)
      return {
        values: withDefaults({ ...values, profile }),
        origins,
        userHost,
        leftOutExec,
        ambientProfile,
      }
    },
  }
}

/** Text of a variable, or of the file that `<NAME>_FILE` names, with its origin. */
type VariableText = Readonly<Record<'text', string> & Record<'origin', Origin>> | undefined
/** Reads the secret of a variable, or of its file. @throws RelayError `settings` */
export type SecretReader = (variable: string) => Promise<VariableText>

/** Opens the environment and `.env` for secrets. @throws RelayError `settings` */
export async function secretReader(shell: Shell): Promise<SecretReader> {
  const places = await variablePlaces(shell, folderFiles(shell, silentLog).dotenv)
  return async (variable) => {
    for (const place of places) {
      const found = await readVariable(shell, place, [variable, `${variable}_FILE`])
      if (found) return found
    }
    return undefined
  }
}

export function withDefaults(given: GivenValues): Values {
  const values = { ...DEFAULT_VALUES, home: defaultHome(), ...given }
  const providerUrl = PUBLIC_HOSTS[values.provider]
  return providerUrl === undefined ? values : { providerUrl, ...values }
}

function defaultHome(): string {
  return envPaths('relay', { suffix: '' }).data
}

/** Returns a place without the values of the folder's files. */
function withoutFolder(source: Source): Source {
  return async (name) => {
    const found = await source(name)
    return found && isOfFolder(found.origin) ? undefined : found
  }
}

/** Returns a place without the commands of the folder's files. */
function withoutFolderExec(source: Source): Source {
  return async (name) => {
    const found = await source(name)
    if (!found || !isOfFolder(found.origin)) return found
    if (name === 'exec') return undefined
    return name === 'routes' ? { ...found, value: routesOf(found).filter((route) => !isExec(route)) } : found
  }
}

function routesOf({ value }: Given): readonly unknown[] {
  return [value].flat()
}

function isExec(route: unknown): boolean {
  return isObject(route) && route['exec'] !== undefined
}

/** Returns the user's section for a profile that a file of the folder has chosen: its commands count as that file's. */
function chosenBy(origin: Origin, section: Source): Source {
  return async (name) => {
    const found = await section(name)
    const isOfCommands = found && (name === 'exec' || (name === 'routes' && routesOf(found).some(isExec)))
    return isOfCommands ? { ...found, origin } : found
  }
}

/** Returns the effective commands, if a file of the folder names them. */
async function folderExec(sources: readonly Source[]): Promise<LoadedSettings['leftOutExec']> {
  const [exec, routes] = [await firstOf(sources, 'exec'), await firstOf(sources, 'routes')]
  const ofFolder = [
    ...(exec ? [{ count: [exec.value].flat().length, origin: exec.origin }] : []),
    ...(routes ? [{ count: routesOf(routes).filter(isExec).length, origin: routes.origin }] : []),
  ].filter(({ count, origin }) => count > 0 && isOfFolder(origin))
  const [first] = ofFolder
  return first && { count: ofFolder.reduce((sum, { count }) => sum + count, 0), origin: first.origin }
}

/** Returns the code host without the folder's files. */
async function hostOfUser(sources: readonly Source[]): Promise<NamedHost | undefined> {
  const { values } = await loaded(sources.map(withoutFolder), [], ['provider', 'providerUrl'])
  return (values.provider ?? values.providerUrl) ? withDefaults(values) : undefined
}

/**
 * Takes each setting from the first source that has it. A value of the folder that the user's own file has too counts
 * as the user's. The password in the address of a shared store is removed, since the address is shown and saved.
 */
async function loaded(sources: readonly Source[], users: readonly Source[], names: readonly SettingName[]) {
  const values: Record<string, unknown> = {}
  const origins: Record<string, Origin> = {}
  for (const name of names) {
    const ofUser = settingOf(name).ofUser ? await firstOf(sources.map(withoutFolder), name) : undefined
    const found = ofUser ?? (await firstOf(sources, name))
    if (!found) continue
    const own = isOfFolder(found.origin) ? await firstOf(users, name) : undefined
    values[name] = found.value
    origins[name] = own && own.value === found.value ? own.origin : found.origin
  }
  const all: { readonly values: GivenValues; readonly origins: Origins } = { values, origins }
  const { store: place } = all.origins
  if (!place || !all.values.store || !isSharedAddress(all.values.store)) return all
  const { address, password } = splitPassword(all.values.store)
  values['store'] = address
  if (password === '') return all
  if (place.kind === 'flag')
    throw new RelayError(
      'settings',
      `${place.text}: a password in the arguments can be read by every user of this machine. Change it, then set PGPASSWORD, ~/.pgpass or RELAY_STORE_FILE`,
    )
  values['storePassword'] = password
  origins['storePassword'] = place
  return all
}

async function firstOf(sources: readonly Source[], name: SettingName): Promise<Given | undefined> {
  for (const source of sources) {
    const found = await source(name)
    if (found) return found
  }
  return undefined
}

/**
 * Parses a value. Empty text counts as not set. @throws RelayError `settings` that names the origin, never the value
 */
async function given(
  name: SettingName,
  text: string | undefined,
  origin: Origin,
): Promise<Given | undefined> {
  if (!text) return undefined
  const { project, env } = settingOf(name)
  try {
    const value: unknown = await PARSERS[name](text)
    if (isOfFolder(origin) && project === 'this machine' && !isOfThisMachine(value))
      throw new Error(`must be on this machine in a project's file: ${env} in the environment sets any other`)
    if (isOfFolder(origin) && project === 'proved' && !(await areProved(value)))
      throw new Error(
        `a project cannot have a source that nothing proves (none): set it with --source or ${env} in the environment`,
      )
    const problem =
      isOfFolder(origin) && project === 'of this machine alone' ? whyNotOfProject(value) : undefined
    if (problem !== undefined) throw new Error(`${problem}. Set it in your own config.json`)
    return { value, origin }
  } catch (cause) {
    const why = isError(cause) ? cause.message : 'invalid value'
    throw new RelayError('settings', `${origin.text}: ${why}`)
  }
}

/** True for an address of this machine, or for routes of `--forward` to it. */
function isOfThisMachine(value: unknown): boolean {
  const addresses = Array.isArray(value)
    ? value.map((text) => {
        const { target } = parseForward(String(text))
        return target.kind === 'http' ? target.url : ''
      })
    : [String(value)]
  return addresses.every((address) => isLoopback(new URL(address).hostname))
}

/**
 * Explains what the routes of a project's file may not have: an address that is not of this machine, a variable, which
 * could be any secret of the user, or a file of certificates. Undefined if they have none of these.
 */
function whyNotOfProject(value: unknown): string | undefined {
  for (const [i, given] of [value].flat().entries()) {
    const { target, headers = {}, ca } = readRoute(given, `routes[${i}]`)
    if (target.kind === 'http' && !isLoopback(new URL(target.url).hostname))
      return `routes[${i}].forward must be on this machine in a project's file`
    if (Object.values(headers).some((text) => variablesIn(text, 'a header').length > 0))
      return `routes[${i}].headers names a variable, which a project's file cannot, since it could be any of yours`
    if (ca !== undefined) return `routes[${i}].ca cannot be set by a project's file`
  }
  return undefined
}

/** True if the deliveries of all these sources are proved. */
async function areProved(value: unknown): Promise<boolean> {
  const { isProved } = await import('./sources.js')
  return [value].flat().every((text) => isProved(String(text)))
}

// Flags

/** Makes the source of flags. With `isBare`, of those without a value, which have the lowest priority. */
function flagSource(flags: Flags, isBare = false): Source {
  return async (name) => {
    const { flag, env, bareDefault } = settingOf(name)
    const origin: Origin = { kind: 'flag', text: flag?.split(' ')[0] ?? env }
    const value = flags[name]
    if (isBare) return value === true ? given(name, bareDefault, origin) : undefined
    return value === true ? undefined : given(name, [value].flat().join('\n'), origin)
  }
}

/** Source of a sandbox's profile. Files cannot name it, since the sandbox deletes its tokens when it starts. */
const sandboxProfile: Source = async (name) =>
  name === 'profile' ? { value: 'sandbox', origin: { kind: 'flag', text: '--sandbox' } } : undefined

/** Source of a hub's profile. Files of the folder cannot name another, whose data would become a hub's. */
const hubProfile: Source = async (name) =>
  name === 'profile' ? { value: HUB_PROFILE, origin: { kind: 'flag', text: 'relay hub' } } : undefined

// Variables

interface VariablePlace {
  readonly variables: Variables
  readonly kind: 'environment' | 'dotenv'
  readonly cwd: string
}

async function variablePlaces(shell: Shell, dotenv: string | undefined): Promise<readonly VariablePlace[]> {
  const { env, cwd } = shell
  const own = { variables: env, kind: 'environment', cwd } as const
  return dotenv === undefined
    ? [own]
    : [own, { variables: await readDotenv(dotenv, shell), kind: 'dotenv', cwd }]
}

/**
 * Makes the source of variables. A secret, and an address that may hold one, can also be in the file that `<NAME>_FILE`
 * names.
 */
function variableSource(shell: Shell, place: VariablePlace): Source {
  return async (name) => {
    const found = await readVariable(shell, place, variablesOf(name))
    return found && given(name, found.text, found.origin)
  }
}

async function readVariable(
  shell: Shell,
  place: VariablePlace,
  [env = '', fileEnv = '']: readonly string[],
): Promise<VariableText> {
  const { variables, kind, cwd } = place
  const [text, file] = [variables[env], variables[fileEnv]]
  if (text) return { text, origin: variableOrigin(place, env) }
  if (!file) return undefined
  const origin = variableOrigin(place, fileEnv)
  const folder = kind === 'dotenv' ? cwd : undefined
  return { text: await readSecretFile(shell, path.resolve(cwd, file), origin.text, folder), origin }
}

function variableOrigin({ kind }: VariablePlace, variable: string): Origin {
  return { kind, text: kind === 'dotenv' ? `${variable} in .env` : variable }
}

/**
 * Makes the source of `BASE_URL`. Other programs use that variable too (test runners set it to "/"), so an unusable
 * value is ignored with a warning.
 */
function bareBaseUrl(place: VariablePlace, log: Log): Source {
  return async (name) => {
    if (name !== 'baseUrl') return undefined
    const origin = variableOrigin(place, 'BASE_URL')
    try {
      return await given(name, place.variables['BASE_URL'], origin)
    } catch {
      const isDotenv = place.kind === 'dotenv'
      const [where, other] = isDotenv ? [' on this machine', ' in the environment'] : ['', '']
      log.warn(
        `${origin.text} is ignored: it is no absolute http:// or https:// address${where} (RELAY_BASE_URL${other} sets it for relay alone)`,
      )
      return undefined
    }
  }
}

/**
 * Reads the variables of `.env`. It can come with a checkout, so it may set only the settings of `relay.json`, and
 * secrets.
 */
async function readDotenv(file: string, shell: Shell): Promise<Variables> {
  const text = (await readText(shell, file, 'pipe')) ?? ''
  // The parser drops a carriage return, which can be the whole line end.
  const variables = parseEnv(text.replaceAll(/\r\n?/g, '\n'))
  for (const [variable, text] of Object.entries(variables)) {
    if (!text || !variable.startsWith('RELAY_')) continue
    if (SOURCE_SECRET.test(variable)) continue
    const name = SETTING_NAMES.find((each) => variablesOf(each).includes(variable))
    const { project, secret, flag } = name ? settingOf(name) : {}
    if (project ?? secret) continue
    const ways = [
      'in the environment',
      ...(flag === undefined ? [] : [`with ${flag.split(' ')[0]}`]),
      ...(name ? [`as ${name} in ${userFile(shell)}`] : []),
    ]
    const why =
      name || variable === 'RELAY_DEBUG'
        ? `cannot be set by a project: set it ${ways.join(', or ')}`
        : `is not a setting${didYouMeanSetting(variable, SETTING_NAMES.flatMap(variablesOf))}`
    throw new RelayError('settings', `${file}: ${variable} ${why}`)
  }
  return variables
}

// Files

type FileKind = 'project' | 'user'

const NO_SETTINGS = { common: async () => undefined, profiles: new Map<string, Source>() }

/**
 * Checks all keys and values. @throws RelayError `settings` that names file, key, and the closest key or the valid form
 */
async function readSettingsFile(shell: Shell, file: string | undefined, kind: FileKind) {
  if (file === undefined) return NO_SETTINGS
  if (kind === 'user' && existsSync(file)) checkOwn(file)
  const { profiles, ...common } = (await readJsonObject(shell, file)) ?? {}
  const section = async (values: unknown, prefix: string): Promise<Source> => {
    if (!isObject(values))
      throw new RelayError('settings', `${file}: ${prefix.slice(0, -1)} must be an object of settings`)
    const found = new Map<SettingName, Given | undefined>()
    for (const [key, value] of Object.entries(values)) {
      const name = nameOfKey(key, kind, `${file}: ${prefix}${key}`, prefix !== '')
      const origin: Origin = { kind, text: `${prefix}${key} in ${file}` }
      found.set(name, await readEntry(shell, name, value, origin, file))
    }
    return async (name) => found.get(name)
  }
  if (profiles !== undefined && kind === 'project')
    throw new RelayError('settings', `${file}: profiles can only be set in your own config.json`)
  if (profiles !== undefined && !isObject(profiles))
    throw new RelayError('settings', `${file}: profiles must be an object of profiles`)
  const sections = new Map<string, Source>()
  for (const [name, values] of Object.entries(profiles ?? {}))
    sections.set(name, await section(values, `profiles.${name}.`))
  return { common: await section(common, ''), profiles: sections }
}

/** Returns the setting of a key. A secret's key names the file that holds it. */
function nameOfKey(key: string, kind: FileKind, place: string, isOfProfile: boolean): SettingName {
  const fail = (why: string): RelayError => new RelayError('settings', `${place} ${why}`)
  const name = [key, key.replace(/File$/, '')].find(isSettingName)
  if (name === undefined || (key !== name && !settingOf(name).secret))
    throw fail(`is not a setting${didYouMeanSetting(key, keysOf(kind))}`)
  const { project, env, flag, secret } = settingOf(name)
  if (kind === 'project' && !project) {
    const ways = [flag?.split(' ')[0], env, secret && `${env}_FILE`].filter(Boolean).join(' or ')
    throw fail(`cannot be set by a project: set it with ${ways}`)
  }
  if (secret && key === name) throw fail(`is a secret: name a file that holds it as ${name}File`)
  if (isOfProfile && (name === 'profile' || name === 'home')) throw fail('cannot be set for one profile')
  return name
}

/**
 * Checks the user's own file, which runs commands and names receivers of secrets. @throws RelayError `settings` if
 * another user can change it
 */
function checkOwn(file: string): void {
  const found = inspectPlace(file)
  if (found && 'why' in found)
    throw new RelayError('settings', `relay does not read ${file}: ${found.why}. ${found.fix}`)
}

/**
 * Reads an entry. Numbers and lists can be JSON numbers and arrays. File names are relative to the settings file, or to
 * the user's home (`~/`).
 */
async function readEntry(
  shell: Shell,
  name: SettingName,
  value: unknown,
  origin: Origin,
  file: string,
): Promise<Given | undefined> {
  const fail = (why: string): RelayError => new RelayError('settings', `${origin.text}: ${why}`)
  const { secret, list } = settingOf(name)
  const text = Array.isArray(value) ? textOfList(name, value, file, list === true) : value
  if (typeof text !== 'string' && typeof text !== 'number')
    throw fail('must be a text, a number, or a list of texts')
  if (text === '') throw fail('must not be empty: leave it out instead')
  const named = besideFile(file, String(text))
  const own = name === 'home' ? named : String(text)
  if (secret) checkOwn(named)
  const found = await given(name, secret ? await readSecretFile(shell, named, origin.text) : own, origin)
  const isFitting = Array.isArray(value)
    ? Array.isArray(found?.value)
    : typeof value === 'string' || typeof found?.value === 'number'
  if (!isFitting) throw fail('must be a text')
  return found
}

/** Joins a list of a file. Routes are objects, whose file of certificates is relative to the settings file. */
function textOfList(name: SettingName, value: readonly unknown[], file: string, isList: boolean): string {
  if (name !== 'routes') return value.join(isList ? '\n' : ',')
  return JSON.stringify(
    value.map((route) =>
      isObject(route) && typeof route['ca'] === 'string'
        ? { ...route, ca: besideFile(file, route['ca']) }
        : route,
    ),
  )
}

/** Path that a settings file names, relative to itself or, after `~/`, to the user's home. */
function besideFile(file: string, named: string): string {
  return path.resolve(path.dirname(file), named.replace(/^~(?=\/|$)/, homedir()))
}

// Misspelt names

/** Settings, with the words of other programs for them. */
const MEANINGS: Readonly<Record<string, string>> = {
  host: 'bind',
  exec: 'command commands',
  home: 'datadir',
  publicurl: 'domain',
  ignore: 'exclude',
  webhooksecret: 'hooksecret secret',
  concurrency: 'parallel',
  baseurl: 'redirecturl',
  keep: 'retention',
  forward: 'target targets',
  routes: 'rules',
  tunnel: 'smee',
}

/** Suggests a name, key or variable of a setting, by its meaning or its spelling. */
export function meantSetting(word: string, names: readonly string[]): string | undefined {
  const meaning = meantBy(normalizeWord(word), MEANINGS)
  // A key of a file can end in File.
  const meant =
    meaning === undefined ? undefined : names.find((name) => normalizeWord(name).startsWith(meaning))
  return meant ?? suggest(word, names)
}

/** Formats a suggestion as ` (did you mean …?)`, or an empty text. */
export function didYouMeanSetting(word: string, names: readonly string[]): string {
  const found = meantSetting(word, names)
  return found === undefined ? '' : ` (did you mean ${found}?)`
}
