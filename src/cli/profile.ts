import path from 'node:path'
import { commandLine, type CommandPlace, isStart, SANDBOX_PROFILE } from '../base/command-line.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { PortInUseError } from '../http/port-in-use.js'
import { Secret } from '../base/secret.js'
import {
  DEFAULTS,
  isCodeHost,
  type ReadRoutes,
  type ReadSettings,
  type StorePlace,
} from '../base/settings.js'
import { isSharedAddress, SharedStore } from '../base/shared-store.js'
import { didYouMean } from '../base/text.js'
import {
  listProfiles,
  profileExists,
  readSavedProfile,
  type SavedProfile,
  saveProfile,
} from '../instance/profile.js'
import type { RunningInstance } from '../instance/protocol.js'
import {
  checkRegistry,
  explainUnreachable,
  findInstances,
  portsOfOthers,
  publishInstance,
  type Unreachable,
  unreachableError,
} from '../instance/running.js'
import type { StartOptions } from '../serve/start.js'
import { type Database, mayHaveData, openDatabase } from '../store/open.js'
import { readProfileSecret } from '../webhook/profile-secret.js'
import type { Flags, Shell } from './command.js'
import { joinSettings, type Joined, type Parts } from './settings/join.js'
import {
  isOfFolder,
  type LoadedSettings,
  openSettings,
  type OpenSettings,
  type Origins,
} from './settings/read.js'
import type { Values } from './settings/parse.js'
import type { SettingName } from './settings/table.js'

/**
 * Settings of a command, {@link joinSettings | joined} from its parts. The data of `relay setup` is joined once the
 * database is open.
 */
export interface Attached extends Joined, Omit<Parts, 'setup' | 'signIns'> {
  readonly profile: string
  /** The profile's folder, which may not exist. */
  readonly folder: string
  /** The running instance of the profile, which has proved itself. */
  readonly instance: RunningInstance | undefined
  /** The instance of the profile, if its process exists but cannot be called. */
  readonly unreachable: Unreachable | undefined
  readonly saved: SavedProfile | undefined
  /**
   * A setting of this shell that contradicts the instance. Only for a command that is `alone`, `tolerant` or a
   * `diagnosis`.
   */
  readonly conflict: ReturnType<typeof conflictWith>
}

/**
 * Requirement of a command for its profile. `existing`: it must exist (the default). `any`: it need not exist. `with
 * client`: as `any`, if this shell has an OAuth client. `alone`: no instance, so that code host and store are this
 * shell's own. `tolerant`: as `any`, and contradictions are no errors. `diagnosis`: as `tolerant`, but it must exist.
 * `answering`: as `existing`, and a running instance must respond; any other command continues without it, with a
 * warning.
 */
export type Need = 'existing' | 'answering' | 'any' | 'with client' | 'alone' | 'tolerant' | 'diagnosis'

/**
 * Reads the settings, and finds the running instance of the command: that of the named profile or, without a name, the
 * only one. Writes nothing.
 * @throws RelayError `settings`; `usage` for a profile that does not exist, or several instances; `unavailable`
 */
export async function attach(shell: Shell, flags: Flags, need: Need = 'existing'): Promise<Attached> {
  const settings = await openSettings(shell, flags)
  const { instance, unreachable } = await chooseInstance(shell, settings)
  if (unreachable && need === 'answering') throw unreachableError(unreachable)
  if (unreachable && need !== 'diagnosis') shell.out.log.warn(unreachableError(unreachable).message)
  const own = await settings.read((instance ?? unreachable?.record)?.profile)
  const { values } = own
  const isTolerant = need === 'tolerant' || need === 'diagnosis'
  const folder = profileFolder(values)
  const parts = { own, instance, saved: readSavedProfile(folder) }
  const conflict = instance && conflictWith(instance, own)
  if (conflict && !isTolerant && need !== 'alone')
    throw new RelayError(
      'settings',
      `${conflict.text}. ${conflict.fix}, or name another profile with --profile`,
    )
  const hasNoClient = need === 'with client' && values.clientSecret === undefined
  const mustExist = ['existing', 'answering', 'diagnosis'].includes(need) || hasNoClient
  if (!instance && !unreachable && mustExist) checkProfile(settings, own)
  const joined = joinSettings(instance && need === 'alone' ? { own } : parts)
  return { ...parts, ...joined, unreachable, profile: values.profile, folder, conflict }
}

/** Returns the folder with all data of the profile. */
export function profileFolder({ home, profile }: Pick<Values, 'home' | 'profile'>): string {
  return path.resolve(home, profile)
}

async function chooseInstance(
  { out, signal }: Shell,
  { home, profile }: OpenSettings,
): Promise<Pick<Attached, 'instance' | 'unreachable'>> {
  const { running, unreachable } = await findInstances(home, { profile, signal })
  const all = [...running, ...unreachable.map(({ record }) => record)]
  const [first] = all
  if (all.length > 1) {
    const names = all.map(({ profile, pid, url }) => `${profile} (process ${pid} at ${url})`).join(', ')
    const isOne = all.every((each) => each.profile === first?.profile)
    const fix = isOne ? 'Stop all but one, or give each its own --profile' : 'Name one with --profile'
    throw new RelayError('usage', `Several relays are running: ${names}. ${fix}`)
  }
  if (first && profile === undefined && first.profile !== DEFAULTS.profile)
    out.say(`Using profile ${first.profile}, which runs at ${first.url}`)
  return { instance: running[0], unreachable: unreachable[0] }
}

/**
 * Throws for a named profile that does not exist, and without a name if only a sandbox exists instead of the default
 * profile.
 */
function checkProfile(settings: OpenSettings, own: LoadedSettings): void {
  const { values, origins } = own
  const { home, profile: named, profiles: configured } = settings
  // Only its server knows, and reports it.
  if (isSharedAddress(values.store)) return
  if (profileExists(profileFolder(values)) || configured.includes(values.profile)) return
  const start = startCommand({ ...own, profile: values.profile })
  if (named === SANDBOX_PROFILE && !origins.provider) throw notRunning({ ...own, profile: named })
  if (named !== undefined && named !== DEFAULTS.profile) {
    const names = [...new Set([...listProfiles(home), ...configured])].toSorted()
    const known = names.length === 0 ? 'There are none yet' : `There are: ${names.join(', ')}`
    throw new RelayError(
      'usage',
      `There is no profile ${named}${didYouMean(named, names)}. ${known}. ${start} creates it`,
    )
  }
  if (named ?? origins.provider ?? origins.providerUrl ?? origins.clientId ?? origins.store) return
  const sandbox = listProfiles(home).find((name) => readSavedProfile(path.join(home, name))?.sandbox)
  if (sandbox !== undefined) throw notRunning({ ...own, profile: sandbox })
}

/** Makes the error of a command that needs the sandbox of a profile. */
export function notRunning(about: Advised): RelayError {
  return new RelayError(
    'unavailable',
    `The sandbox is not running. Start it with ${startCommand({ ...about, saved: { sandbox: true } })}`,
  )
}

/**
 * Makes the error of a command that needs the running instance. `more` continues the command line that starts one, and
 * the sentence.
 */
export function notServed(about: Advised & Partial<Pick<Attached, 'unreachable'>>, more = ''): RelayError {
  if (about.unreachable) return unreachableError(about.unreachable)
  return new RelayError(
    'unavailable',
    `No relay is running for profile ${about.profile}. Start it with ${startCommand(about)}${more}`,
  )
}

/** The profile of a command line, with settings that decide how it is written. */
export interface Advised extends Pick<LoadedSettings, 'origins' | 'ambientProfile' | 'values'>, SavedSandbox {
  readonly profile: string
  readonly instance?: Pick<RunningInstance, 'sandbox'> | undefined
}

/**
 * Formats a command line that works in this shell for a profile, as `commandLine` does. A start does not use a port of
 * another profile's relay. @param command without `relay`
 */
export function commandFor(about: Advised, command: string): string {
  const place = commandPlace(about)
  if (!isStart(command)) return commandLine(place, command)
  const { home, port } = about.values
  const taken = portsOfOthers(home, about.profile)
  const isFree = !taken.has(port) || command.includes('--port ')
  return commandLine(place, isFree ? command : `${command} --port 0`)
}

/** Formats a command line without the instance or the data. @throws RelayError `settings` */
export async function commandAt(shell: Shell, flags: Flags, command: string): Promise<string> {
  const settings = await openSettings(shell, flags)
  const loaded = await settings.read()
  return commandFor({ ...loaded, profile: loaded.values.profile }, command)
}

/** Makes the place of command lines for lower rooms, whose messages are about the profile. */
export function commandPlace(about: Advised): CommandPlace {
  const { profile, origins, ambientProfile: ambient, saved, instance } = about
  const sandbox = (instance ?? saved)?.sandbox === true
  return { profile, sandbox, isNamed: origins.profile !== undefined, ambient }
}

/** Formats the command line that starts a profile's instance. */
export function startCommand(about: Advised): string {
  return commandFor(about, 'serve')
}

/** Formats how to restart the instance, or to start one, as the beginning of a sentence that names its process. */
export function restartText(
  about: Advised & { readonly instance?: Pick<RunningInstance, 'pid' | 'sandbox'> | undefined },
): string {
  const { instance } = about
  return instance
    ? `Restart ${startCommand(about)} (process ${instance.pid})`
    : `Start ${startCommand(about)}`
}

/** Formats what another start needs first, as the beginning of a sentence; `otherwise` without an instance. */
export function stopFirst({ instance }: Pick<Attached, 'instance'>, otherwise = ''): string {
  return instance ? `Stop process ${instance.pid}, then ` : otherwise
}

interface SavedSandbox {
  readonly saved?: Pick<SavedProfile, 'sandbox'> | undefined
}

/** Finds the first setting of this command that contradicts the instance, with the fix. Settings of files never do. */
function conflictWith(instance: RunningInstance, { values, origins }: LoadedSettings) {
  const { pid, profile, provider, providerUrl, store, clientId, sandbox } = instance
  const host = `for ${provider} at ${providerUrl}`
  const served: readonly (readonly [SettingName, string | null | undefined, string])[] = [
    ['provider', provider, host],
    ['providerUrl', providerUrl, host],
    ['store', store, `with --store ${store}`],
    // A sandbox generates its own client, whatever is set.
    ['clientId', sandbox ? undefined : clientId, `with the OAuth client ${clientId}`],
  ]
  for (const [name, value, how] of served) {
    const { kind, text: place } = origins[name] ?? {}
    if ((kind !== 'flag' && kind !== 'environment') || (value ?? values[name]) === values[name]) continue
    const text = `${place} is ${String(values[name])}, but process ${pid} serves profile ${profile} ${how}`
    return { text, fix: kind === 'flag' ? 'Omit the flag' : 'Unset the variable' }
  }
  return undefined
}

/**
 * Makes the error of a start whose port is used by a relay. If that serves the same profile, another port would not
 * help. Other errors are unchanged. @throws RelayError `settings` as {@link findRunning}; the signal's reason
 */
export async function explainPort(
  { signal }: Pick<Shell, 'signal'>,
  { home, profile, store }: Pick<Values, 'home' | 'profile' | 'store'>,
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof PortInUseError)) return error
  const { running, unreachable } = await findInstances(home, { signal })
  const portOf = (url: string): number => Number(new URL(url).port)
  const silent = unreachable.find(({ record }) => portOf(record.url) === error.port)
  const sandboxed = running.find(
    ({ url, sandbox, providerUrl }) =>
      portOf(url) === error.port || (sandbox && portOf(providerUrl) === error.port),
  )
  const owner = sandboxed ?? silent?.record
  if (!owner) return error
  const what = portOf(owner.url) === error.port ? '' : ' with its sandbox'
  const where = `process ${owner.pid} serves profile ${owner.profile}${what} there`
  const unasked = sandboxed ? undefined : silent
  // With a shared store or in memory, several can serve a profile.
  if (owner.profile !== profile || store === 'memory' || isSharedAddress(store))
    return new PortInUseError(
      error,
      `in use: ${where}${unasked ? `: ${explainUnreachable(unasked).fix}` : ''}`,
      {
        cause: error,
      },
    )
  const ports = sandboxed?.sandbox ? 'other ports with --port and --sandbox-port' : 'another port with --port'
  const also = unasked ? `: ${unreachableError(unasked).message}` : ''
  return new RelayError(
    'unavailable',
    `Profile ${profile} is already served by process ${owner.pid} at ${owner.url}. Stop it, or choose another profile with --profile, and ${ports}${also}`,
    { cause: error },
  )
}

/**
 * Makes the error of a command that needs data which only the instance has. `what` is a noun phrase, such as "its
 * journal".
 */
export function onlyInMemory({ pid, profile }: RunningInstance, what: string): RelayError {
  return new RelayError(
    'settings',
    `Process ${pid} serves profile ${profile} with --store memory, so no other process can read ${what}. Start it with --store file`,
  )
}

/**
 * Returns the place of the profile's data, with its secrets. @throws RelayError `settings` if a shared store has no key
 */
export function storeOf({ store, storePassword, tokenKey, tokenKeyPrevious }: Values): StorePlace {
  if (!isSharedAddress(store)) return store
  if (tokenKey === undefined)
    throw new RelayError(
      'settings',
      'RELAY_TOKEN_KEY is not set. It encrypts what a shared store holds: make it with openssl rand -base64 32, and set the same for every relay and command that uses the store',
    )
  const previous = tokenKeyPrevious === undefined ? undefined : new Secret(tokenKeyPrevious)
  const password = storePassword === undefined ? undefined : new Secret(storePassword)
  return new SharedStore(store, { password, keys: { current: new Secret(tokenKey), previous } })
}

/**
 * Opens the profile's data, if it can have any that this process can read. Creates it only with `create`, in a new
 * shared store.
 * @throws RelayError `storage`; `settings` for a shared store without its key
 */
export async function openData(
  attached: LoadedSettings & Pick<Attached, 'folder'> & SavedSandbox,
  { create = false }: { readonly create?: boolean } = {},
): Promise<Database | undefined> {
  const { folder } = attached
  const kind = storeOf(attached.values)
  if (!mayHaveData(kind, folder)) return undefined
  return openDatabase({
    kind,
    folder,
    create,
    startCommand: startCommand({ ...attached, profile: attached.values.profile }),
  })
}

/** Returns the routes of the settings. */
export function routeSettings({ values, origins }: Pick<LoadedSettings, 'values' | 'origins'>): ReadRoutes {
  const { forward = [], exec = [], ignore = [] } = values
  return { forward, folderForward: origins.forward && isOfFolder(origins.forward), exec, ignore }
}

/** Returns the address at which browsers reach relay, as far as known. */
export function publicAddress({ values, instance }: Pick<Attached, 'values' | 'instance'>): string {
  const { host, port, publicUrl } = values
  const local = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  return instance?.publicUrl ?? publicUrl ?? local
}

/**
 * Returns the address of the running tunnel for the code host. Undefined if there is none, or it has no channel yet.
 */
export function tunnelAddress({ instance }: Pick<Attached, 'instance'>): string | undefined {
  return instance?.tunnels.find(({ source }) => isCodeHost(source))?.url ?? undefined
}

/**
 * Formats the callback address, as registered at the code host. The value of port 0 is not known before relay listens.
 */
export function redirectUri(publicUrl: string, provider: string): string {
  return `${publicUrl.replace(/:0$/, ':<port>')}/auth/${provider}/callback`
}

/** A webhook secret with its origin: a setting, `profile`, or the process that generated it. */
export interface FoundSecret {
  readonly secret: Secret
  readonly place: string
}

/**
 * Finds the webhook secret: that of `--secret-env`, else of the settings, else the instance's own, else the profile's.
 * Generates none.
 * @param data the profile's data; undefined if it has none
 * @throws RelayError `settings` if the variable of `--secret-env` is not set; `storage`
 */
export async function webhookSecret(
  { env }: Pick<Shell, 'env'>,
  { values, origins, instance }: Pick<Attached, 'values' | 'origins' | 'instance'>,
  { secretEnv, data }: { readonly secretEnv?: string | undefined; readonly data: Database | undefined },
): Promise<FoundSecret | undefined> {
  if (secretEnv !== undefined) {
    const value = env[secretEnv]
    if (value) return { secret: new Secret(value), place: secretEnv }
    throw new RelayError('settings', `--secret-env: ${secretEnv} is not set`)
  }
  if (values.webhookSecret)
    return { secret: new Secret(values.webhookSecret), place: origins.webhookSecret?.text ?? '' }
  if (instance && typeof instance.madeSecret === 'string')
    return { secret: new Secret(instance.madeSecret), place: `process ${instance.pid}` }
  const secret = await readProfileSecret(data?.store)
  return secret && { secret, place: 'profile' }
}

/**
 * Explains why a hook or an App should not get this webhook secret: the author of a file of the folder, who can be
 * anyone, has chosen it.
 */
export function sharedSecretText({ webhookSecret: origin }: Origins): string | undefined {
  if (!origin || !isOfFolder(origin)) return undefined
  return `the code host signs with the secret of ${origin.text}: anyone who can read that can sign deliveries, too. Without it, relay makes one of its own`
}

/** Requires a webhook secret. `purpose` completes "no webhook secret to …". @throws RelayError `settings` */
export function requireSecret(found: FoundSecret | undefined, purpose: string): FoundSecret {
  if (found) return found
  throw new RelayError(
    'settings',
    `There is no webhook secret to ${purpose}: set RELAY_WEBHOOK_SECRET, or name a variable with --secret-env`,
  )
}

/**
 * Makes the registration of a service that this process starts, so that commands of other terminals find it, and saves
 * the use of its profile. With a memory store, nothing but the registration is written. It warns if this fails.
 * @throws RelayError `settings` if another user can change the registrations
 */
export function publication({ out }: Shell, loaded: Joined): Pick<StartOptions, 'onTaken' | 'shown'> {
  const { values, origins } = loaded
  const { store, home } = values
  if (store !== 'memory') checkRegistry(home)
  return {
    // No other place has the secret that is generated with a memory store.
    shown: { folderHost: loaded.folderHost, hasMadeSecret: !origins.webhookSecret },
    onTaken({ record, settings, sandbox }) {
      // A full or read-only disk does not prevent a start, since stored deliveries can be forwarded.
      try {
        remember(loaded, settings, sandbox !== undefined)
        return publishInstance(home, record)
      } catch (error) {
        out.log.warn(`other terminals cannot find this relay: ${toRelayError(error).message}`)
        return undefined
      }
    },
  }
}

/**
 * Saves the use of a profile; with a memory store, nothing. @throws RelayError `settings` and `storage` as
 * `saveProfile`
 */
export function remember(
  { values }: Pick<LoadedSettings, 'values'>,
  { provider, providerUrl, hostRefusal }: Pick<ReadSettings, 'provider' | 'providerUrl' | 'hostRefusal'>,
  sandbox: boolean,
): void {
  const { store } = values
  if (store === 'memory') return
  const folder = profileFolder(values)
  const unknown = { provider: null, providerUrl: null, sandbox }
  // Saved values count as the user's own, so a code host that only the working folder names does not replace them.
  const host = hostRefusal ? (readSavedProfile(folder) ?? unknown) : { provider, providerUrl, sandbox }
  saveProfile(folder, { ...host, store })
}
