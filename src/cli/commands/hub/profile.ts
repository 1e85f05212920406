import { RelayError } from '../../../base/errors.js'
import { type Command, hubCommands } from '../../../base/command-line.js'
import { markHub } from '../../../serve/hub-profile.js'
import { type Database, mayHaveData } from '../../../store/open.js'
import type { Flags, Shell } from '../../command.js'
import { openStored } from '../../profile.js'
import { profileFolder, storeOf } from '../../settings/derived.js'
import { type LoadedSettings, openSettings } from '../../settings/read.js'

/** Settings of a hub's profile, which is `hub` unless another is named. */
export async function readHubSettings(shell: Shell, flags: Flags): Promise<LoadedSettings> {
  return (await openSettings(shell, { ...flags, hub: true })).read()
}

/** Completes the commands of the hub's operator. */
export function hubCommandsOf({ values: { profile } }: LoadedSettings): Command {
  return hubCommands(profile)
}

/**
 * Opens the data of a hub, also while a hub runs. @param create makes it if there is none; else it is `no_match`
 * @throws RelayError `no_match`; `settings` for a profile of `relay serve`; `storage`
 */
export async function openHubData(shell: Shell, loaded: LoadedSettings, create: boolean): Promise<Database> {
  const { values } = loaded
  const folder = profileFolder(values)
  if (values.store === 'memory')
    throw new RelayError('settings', 'RELAY_STORE is memory: only relay hub itself can read that data')
  if (!create && !mayHaveData(storeOf(values), folder))
    throw new RelayError(
      'no_match',
      `Profile ${values.profile} has no hub yet. ${hubCommandsOf(loaded)('hub')} makes it`,
    )
  const database = await openStored(shell, { ...loaded, folder }, { create })
  try {
    await markHub(database, { profile: values.profile, folder, store: values.store })
    return database
  } catch (error) {
    await database[Symbol.asyncDispose]()
    throw error
  }
}
