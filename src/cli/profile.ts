import path from 'node:path'
import { type Command, SANDBOX_PROFILE } from '../base/command-line.js'
import { RelayError } from '../base/errors.js'
import { Disposal } from '../base/lifetime.js'
import { DEFAULTS, type CodeHostSettings } from '../base/settings.js'
import { isSharedAddress } from '../base/shared-store.js'
import { didYouMean } from '../base/text.js'
import {
  listProfiles,
  profileExists,
  readSavedProfile,
  type SavedProfile,
  saveProfile,
} from '../instance/profile.js'
import type { RunningInstance } from '../instance/protocol.js'
import { findInstances, type Unreachable, unreachableError } from '../instance/running.js'
import { Journal } from '../journal/journal.js'
import {
  type Database,
  mayHaveData,
  openDatabase,
  type OpenDatabaseOptions,
  type Patience,
} from '../store/open.js'
import {
  aboutProfile,
  type Advised,
  commandFor,
  notRunning,
  ofHub,
  onlyInMemory,
  startCommand,
} from './advice.js'
import type { Flags, Shell } from './command.js'
import { profileFolder, storeOf } from './settings/derived.js'
import { joinSettings, type Joined, type Parts, withStore } from './settings/join.js'
import { type LoadedSettings, openSettings, type OpenSettings } from './settings/read.js'
import type { JoinedStored } from './stored-setup.js'

/** Options with which a command opens its profile. */
export interface ProfileOptions {
  /**
   * True: a profile that does not exist is an error. `without a client`: only if this shell has no OAuth client. Default:
   * true.
   */
  readonly mustExist?: boolean | 'without a client'
  /**
   * Role of the running instance. `follow`: its code host and its store count for the command. `consult`: if this shell
   * names a code host, its own count, and the instance supplies only its sources and its secret. `refuse`: none may run.
   * `ignore`: the command does not look for one, and only the settings of this shell count. Default: `follow`.
   */
  readonly instance?: 'follow' | 'consult' | 'refuse' | 'ignore'
  /**
   * Handling of an instance that is unreachable, and of a setting of this shell that contradicts the followed instance.
   * `warn`: the first is a warning and the second an error. `fail`: both are errors, for a command that needs the
   * instance. `report`: the command itself reports them. Default: `warn`.
   */
  readonly problems?: 'warn' | 'fail' | 'report'
  /** True: the profile may be that of a hub, which has no instance, journal or code host of its own. Default: an error. */
  readonly mayBeHub?: boolean
}

/** The profile of a command and its instance, before the settings are joined. */
export interface FoundProfile {
  readonly name: string
  /** Folder of the profile, which may not exist. */
  readonly folder: string
  /** Settings of flags, variables and files alone, without the instance and without the saved profile. */
  readonly own: LoadedSettings
  /** The running instance, which has proved itself. */
  readonly instance: RunningInstance | undefined
  /** The instance, if its process runs but cannot be reached. */
  readonly unreachable: Unreachable | undefined
  /** Store and code host that the profile saved at its last use. */
  readonly saved: SavedProfile | undefined
  /** A setting of this shell that contradicts the instance. */
  readonly conflict: Conflict | undefined
  /** Settings that count for the command, to be joined. */
  readonly parts: Parts
}

/** A profile, opened for one command. Its data is opened at the first use, and closed when the profile is disposed of. */
export interface Profile extends FoundProfile, Joined, AsyncDisposable {
  /** Completes a command line, given without `relay`, so that it works in this shell for the profile. */
  readonly command: Command
  /**
   * Opens the data of the profile at the first call, whose options count. Undefined if it has none that this process can
   * read.
   * @throws RelayError `storage`; `settings` for a shared store without its key; `no_match` for one without data of the
   * profile
   */
  readonly data: (options?: Patience) => Promise<Database | undefined>
  /** Opens the data of the profile, or creates it. @throws RelayError `storage`; `settings` as `openDatabase` */
  readonly createData: () => Promise<Database>
  /**
   * Opens the journal, with or without a running instance, even if the keychain is locked. Creates none.
   * @throws RelayError `no_match` if there is none yet; `settings` for a store that other processes cannot read;
   * `storage`
   */
  readonly journal: () => Promise<Journal>
}

/** A profile whose data is open. What `relay setup` and sign-ins stored completes its settings. */
export interface ProfileWithData extends Profile, JoinedStored {
  /** Data of the profile, or an empty database in memory if it has none. */
  readonly database: Database
}

/** Options with which the data of a profile is opened. */
export interface DataOptions {
  /** `create`: creates the data if there is none, unless an instance runs. */
  readonly data: 'open' | 'create'
  /** True: the command signs the user in, which needs no stored token. Default: false. */
  readonly signsIn?: boolean
}

/**
 * Opens the profile of a command: the named one or, without a name, that of the only running instance. Reads and joins
 * the settings once; with `data`, what the profile's data stores completes them. Writes nothing, except with `create`.
 * @throws RelayError `settings`; `usage` for a profile that does not exist, or several instances; `unavailable`; with
 * `data` as {@link openData}
 */
export function openProfile(shell: Shell, flags: Flags, options?: ProfileOptions): Promise<Profile>
export function openProfile(
  shell: Shell,
  flags: Flags,
  options: ProfileOptions & DataOptions,
): Promise<ProfileWithData>
export async function openProfile(
  shell: Shell,
  flags: Flags,
  options: ProfileOptions & Partial<DataOptions> = {},
): Promise<Profile> {
  const { data, signsIn, ...others } = options
  const found = await findProfile(shell, flags, others)
  return data ? openData(shell, found, { data, ...(signsIn && { signsIn }) }) : openFound(shell, found)
}

/** Finds the profile of a command, for one that opens it more than once. @throws RelayError as {@link openProfile} */
export async function findProfile(
  shell: Shell,
  flags: Flags,
  { mustExist = true, instance: part = 'follow', problems = 'warn', mayBeHub = false }: ProfileOptions = {},
): Promise<FoundProfile> {
  const settings = await openSettings(shell, flags)
  const { instance, unreachable } = part === 'ignore' ? NONE : await chooseInstance(shell, settings)
  if (unreachable && problems === 'fail') throw unreachableError(unreachable)
  if (unreachable && problems === 'warn') shell.out.log.warn(unreachableError(unreachable).message)
  const own = await settings.read((instance ?? unreachable?.record)?.profile)
  const folder = profileFolder(own.values)
  const saved = part === 'ignore' ? undefined : readSavedProfile(folder)
  if (saved?.hub && !mayBeHub) throw await ofHub({ ...own, saved }, folder)
  const conflict = instance && conflictWith(instance, own)
  if (conflict && problems !== 'report' && part !== 'consult')
    throw new RelayError(
      'settings',
      `${conflict.text}. ${conflict.fix}, or name another profile with --profile`,
    )
  const hasClient = own.values.clientSecret !== undefined
  const isNeeded = mustExist === 'without a client' ? !hasClient : mustExist
  if (!instance && !unreachable && isNeeded) checkProfile(settings, own)
  if (instance && part === 'refuse')
    throw new RelayError(
      'unavailable',
      `Profile ${instance.profile} is in use by process ${instance.pid} at ${instance.url}. Stop it first`,
    )
  const isNamed = own.origins.provider !== undefined || own.origins.providerUrl !== undefined
  const parts = instance && part === 'consult' && isNamed ? { own } : { own, instance, saved }
  return { own, instance, unreachable, saved, conflict, folder, name: own.values.profile, parts }
}

/** Opens a profile without its data. @throws RelayError `settings` as `joinSettings` */
export function openFound(shell: Shell, found: FoundProfile): Profile {
  const known = { ...found, ...joinSettings(found.parts) }
  return { ...known, command: (line) => commandFor(known, line), ...lazyData(shell, known) }
}

/**
 * Opens a profile with its data. Disposing of the result closes the data.
 * @throws RelayError `settings` when the data is in the instance's memory, and for a code host that only the working
 * folder names if there is no data; `no_match` for a shared store without data of the profile; `storage`
 */
export async function openData(
  shell: Shell,
  found: FoundProfile,
  options: DataOptions & Patience,
): Promise<ProfileWithData> {
  const { instance } = found
  if (instance?.store === 'memory') throw onlyInMemory(instance, 'its tokens')
  await using opened = new Disposal()
  const { database, joined } = await joinData(shell, found, options)
  opened.use(database)
  const known = { ...found, ...joined }
  const resources = opened.move()
  return {
    ...known,
    command: (line) => commandFor(known, line),
    database,
    data: async () => database,
    createData: async () => database,
    journal: async () => new Journal(database.sql),
    [Symbol.asyncDispose]: () => resources[Symbol.asyncDispose](),
  }
}

/** Opens the data and joins the settings with it. Creates none for a code host that only the folder names. */
async function joinData(
  shell: Shell,
  { folder, instance, saved, parts: given }: FoundProfile,
  { data, signsIn = false, patience }: DataOptions & Patience,
): Promise<{ readonly database: Database; readonly joined: JoinedStored }> {
  const parts = { ...given, signsIn }
  const about = { ...withStore(parts), folder, instance, saved }
  const create = data === 'create' && !instance
  if (mayHaveData(storeOf(about.values), folder)) {
    const database = await openStored(shell, about, { create: false, patience }).catch((error: unknown) =>
      create ? noDataYet(error) : fail(error),
    )
    if (database) {
      await using opened = new Disposal()
      opened.use(database)
      // Loaded late, since most commands need no stored client.
      const { joinStored } = await import('./stored-setup.js')
      const joined = await joinStored(parts, database.secrets)
      opened.move()
      return { database, joined }
    }
  }
  const joined = { ...joinSettings(parts), setup: undefined }
  if (joined.hostRefusal) throw joined.hostRefusal
  const place = create ? { create } : { create, kind: 'memory' as const }
  return { database: await openStored(shell, about, place), joined }
}

function fail(error: unknown): never {
  throw error
}

/** Instance of a command that does not look for one. */
const NONE = { instance: undefined, unreachable: undefined }

/** Functions that open the data of a profile at their first call. */
function lazyData(
  shell: Shell,
  about: Advised & Pick<Profile, 'folder' | 'instance'>,
): Pick<Profile, 'data' | 'createData' | 'journal' | typeof Symbol.asyncDispose> {
  const { values, folder, instance } = about
  let opened: Promise<Database> | undefined
  const open = (options: Partial<OpenDatabaseOptions>): Promise<Database> =>
    (opened ??= openStored(shell, about, options).catch((error: unknown) => {
      opened = undefined
      throw error
    }))
  const data: Profile['data'] = async (options = {}) =>
    opened || mayHaveData(storeOf(values), folder) ? open({ ...options, create: false }) : undefined
  return {
    data,
    createData: () => open({ create: true }),
    async journal() {
      if (values.store === 'memory' && !instance)
        throw new RelayError(
          'settings',
          'RELAY_STORE is memory: only relay serve itself can read that journal',
        )
      const database = await data()
      if (database) return new Journal(database.sql)
      if (instance?.store === 'memory') throw onlyInMemory(instance, 'its journal')
      throw new RelayError(
        'no_match',
        `Profile ${values.profile} has no journal yet. ${startCommand(about)} creates it`,
      )
    },
    async [Symbol.asyncDispose]() {
      await (await opened)?.[Symbol.asyncDispose]()
    },
  }
}

/** Opens the store of the settings. @throws RelayError as `openDatabase` */
export async function openStored(
  { out, env }: Shell,
  about: Advised & Pick<Profile, 'folder'>,
  options: Partial<OpenDatabaseOptions> = {},
): Promise<Database> {
  const { values, folder } = about
  const onSlow = (text: string): void => out.say(text)
  return openDatabase({
    kind: storeOf(values),
    folder,
    startCommand: startCommand(about),
    env,
    onSlow,
    ...options,
  })
}

/** Turns the error of a shared store without data of the profile into undefined. @throws any other error */
export function noDataYet(error: unknown): undefined {
  if (!(error instanceof RelayError) || error.kind !== 'no_match') throw error
}

// Choice of profile and instance

async function chooseInstance(
  { out, signal }: Shell,
  { home, profile }: OpenSettings,
): Promise<Pick<Profile, 'instance' | 'unreachable'>> {
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
  const start = startCommand(own)
  if (named === SANDBOX_PROFILE && !origins.provider) throw notRunning(own)
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
  if (sandbox !== undefined) throw notRunning(aboutProfile(own, sandbox))
}

/** A setting that contradicts the instance, and its fix. */
interface Conflict {
  readonly text: string
  readonly fix: string
}

/** Finds the first flag or variable that contradicts the instance. Settings of files do not count. */
function conflictWith(instance: RunningInstance, { values, origins }: LoadedSettings): Conflict | undefined {
  const { pid, profile, provider, providerUrl, store, clientId, sandbox } = instance
  const host = `for ${provider} at ${providerUrl}`
  const served: readonly (readonly [
    'provider' | 'providerUrl' | 'store' | 'clientId',
    string | null | undefined,
    string,
  ])[] = [
    ['provider', provider, host],
    ['providerUrl', providerUrl, host],
    ['store', store, `with --store ${store}`],
    // A sandbox generates its own client, whatever is set.
    ['clientId', sandbox ? undefined : clientId, `with the OAuth client ${clientId}`],
  ]
  for (const [name, value, how] of served) {
    const own = values[name]
    const { kind, text: place } = origins[name] ?? {}
    if ((kind !== 'flag' && kind !== 'environment') || (value ?? own) === own) continue
    const text = `${place} is ${own}, but process ${pid} serves profile ${profile} ${how}`
    return { text, fix: kind === 'flag' ? 'Omit the flag' : 'Unset the variable' }
  }
  return undefined
}

/** Saves the store and the code host in the profile, except for a memory store. @throws RelayError as `saveProfile` */
export function remember(
  { values }: LoadedSettings,
  { provider, providerUrl, hostRefusal }: CodeHostSettings,
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
