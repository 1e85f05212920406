import path from 'node:path'
import { RelayError } from '../../base/errors.js'
import { DEFAULTS } from '../../base/settings.js'
import { isSharedAddress } from '../../base/shared-store.js'
import { findRunning, type RunningInstance } from '../../instance/running.js'
import { listProfiles, profileExists, readSavedProfile, type SavedProfile } from '../../instance/profile.js'
import type { SendRequest } from '../../net/loopback.js'
import type { Context } from '../context.js'
import { createOutput, type Output } from '../output/output.js'
import { profileFolder } from '../settings/complete.js'
import type { OptionValues } from '../settings/options.js'
import type { CommonFlags, Prepared } from '../settings/prepare.js'
import { checkSecretsPlace, openSources, type LoadedOptions, type SettingsSources } from '../settings/read.js'
import { didYouMean } from '../../base/suggest.js'
import { type Conflict, conflicts, contradiction, followInstance } from './instance-settings.js'
import { SANDBOX_PROFILE, startCommand } from './start-command.js'

/** The settings of a command, in agreement with the instance that it works with. */
export interface Attached extends Prepared {
  /** The settings of this shell alone. */
  readonly own: OptionValues
  /** The running instance of the profile, which has proved itself. */
  readonly instance: RunningInstance | undefined
  /** The settings of this shell that contradict it. Not empty only for a `tolerant` or `standalone` command. */
  readonly conflicts: readonly Conflict[]
  /** What the profile remembers of its last use. */
  readonly saved: SavedProfile | undefined
}

export interface AttachOptions {
  /** Sends the challenge; see `ProbeOptions`. */
  readonly send?: SendRequest | undefined
  /** The command may be the first to use a profile, always or with an OAuth client. Default: one that does not exist is an error. */
  readonly mayCreate?: 'always' | 'with client'
  /** The command waits for a profile that does not exist yet. Default: an error. */
  readonly mayWait?: boolean
  /** The command needs no instance, so the code host and store are its own settings'. Default: those of the instance. */
  readonly standalone?: boolean
  /** The command itself reports contradictions and misplaced secrets. Default: they are errors. */
  readonly tolerant?: boolean
}

/**
 * Reads the settings and finds the running instance that a command works with: that of the profile that is named or, if none is,
 * the only one that runs on this data folder. The settings then follow the instance, or what the profile remembers. Writes nothing.
 * @throws RelayError `settings`; `usage` when a profile that is named does not exist, or none is named and several instances
 * run; `unavailable` when none runs and only a sandbox's profile exists.
 */
export async function attach(
  context: Context,
  flags: CommonFlags,
  options: AttachOptions = {},
): Promise<Attached> {
  const output = createOutput(context, flags)
  const sources = openSources(context, flags, output.log)
  const instance = await chooseInstance(context, sources, options, output)
  const loaded = sources.read(instance?.profile)
  if (!options.tolerant) checkSecretsPlace(loaded.origins)
  const saved = readSavedProfile(profileFolder(loaded.options))
  const common = { output, ...loaded, own: loaded.options, instance, saved }
  if (instance) {
    const found = conflicts(instance, loaded)
    if (found[0] && !options.standalone && !options.tolerant) throw contradiction(found[0])
    const followed = options.standalone ? loaded.options : followInstance(instance, loaded)
    return { ...common, options: followed, conflicts: found }
  }
  const { mayCreate: creator } = options
  const mayCreate = creator === 'always' || (creator && loaded.options.clientSecret !== undefined)
  if (!options.standalone && !options.mayWait && !mayCreate) checkProfile(sources, loaded)
  return { ...common, options: withSaved(saved, loaded), conflicts: [] }
}

/** The settings with what the profile remembers, where nothing else is set. */
function withSaved(saved: SavedProfile | undefined, loaded: LoadedOptions): LoadedOptions['options'] {
  const { options, origins } = loaded
  if (!saved) return options
  const { store, provider, providerUrl } = saved
  const isOpen = origins.provider === undefined && origins.providerUrl === undefined
  return {
    ...options,
    ...(origins.store === undefined && { store }),
    ...(isOpen && provider !== null && providerUrl !== null && { provider, providerUrl }),
  }
}

async function chooseInstance(
  { signal }: Context,
  { home, profile }: SettingsSources,
  { send }: AttachOptions,
  output: Output,
): Promise<RunningInstance | undefined> {
  const [first, ...others] = await findRunning(home, { profile, signal, send })
  if (!first) return undefined
  if (others.length > 0) throw severalRun([first, ...others])
  if (profile === undefined && first.profile !== DEFAULTS.profile)
    output.say(`Using profile ${first.profile}, which runs at ${first.url}`)
  return first
}

function severalRun(running: readonly RunningInstance[]): RelayError {
  const names = running.map(({ profile, pid, url }) => `${profile} (process ${pid} at ${url})`).join(', ')
  const isOne = new Set(running.map(({ profile }) => profile)).size === 1
  const fix = isOne ? 'Stop all but one, or give each its own --profile' : 'Name one with --profile'
  return new RelayError('usage', `Several relays are running: ${names}. ${fix}`)
}

/**
 * @throws RelayError `usage` for a profile that is named and does not exist, with those that do; `unavailable` when none is
 * named, nothing is known of the default one, and a sandbox can be started.
 */
function checkProfile(sources: SettingsSources, { options, origins }: LoadedOptions): void {
  const { home, profile: named, profiles: configured } = sources
  // Only its server knows, and says so.
  if (isSharedAddress(options.store)) return
  if (profileExists(profileFolder(options)) || configured.includes(options.profile)) return
  if (named === SANDBOX_PROFILE && !origins.provider) throw notRunning(named)
  if (named !== undefined && named !== DEFAULTS.profile) throw unknownProfile(named, home, configured)
  if (origins.provider ?? origins.providerUrl ?? origins.clientId ?? origins.store) return
  const sandbox = findSandbox(home)
  if (sandbox !== undefined) throw notRunning(sandbox)
}

function unknownProfile(name: string, home: string, configured: readonly string[]): RelayError {
  const names = [...new Set([...listProfiles(home), ...configured])].toSorted()
  const known = names.length === 0 ? 'There are none yet' : `There are: ${names.join(', ')}`
  return new RelayError(
    'usage',
    `There is no profile ${name}${didYouMean(name, names)}. ${known}. ${startCommand({ profile: name })} creates it`,
  )
}

/** The name of a sandbox's profile on this data folder. */
function findSandbox(home: string): string | undefined {
  return listProfiles(home).find((name) => readSavedProfile(path.join(home, name))?.sandbox)
}

/** The error where a command needs the sandbox of a profile. */
export function notRunning(profile: string): RelayError {
  const start = startCommand({ profile, sandbox: true })
  return new RelayError('unavailable', `The sandbox is not running. Start it with ${start}`)
}
