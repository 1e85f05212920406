import { type Cancellable, sleep } from '../../base/abort.js'
import { RelayError } from '../../base/errors.js'
import { Journal } from '../../journal/journal.js'
import { mayHaveData, openDatabase } from '../../store/open.js'
import type { Output } from '../output/output.js'
import type { Attached } from '../session/attach.js'
import { onlyInMemory } from '../session/instance-settings.js'
import { startCommand } from '../session/start-command.js'
import { profileFolder, storeOf } from '../settings/complete.js'
import { POLL_MS } from './poll.js'

/** A profile's journal, open for reading. */
export interface JournalReader extends AsyncDisposable {
  readonly output: Output
  readonly journal: Journal
}

/**
 * Opens the journal of the profile, whether its instance runs or not; it sees what the instance writes from then on. Makes none.
 * @throws RelayError `no_match` when the profile has no journal yet; `settings` for a store that other processes cannot read;
 * `storage`.
 */
export async function openJournalReader({ output, options, instance }: Attached): Promise<JournalReader> {
  const { profile } = options
  if (instance?.store === 'memory') throw onlyInMemory(instance, 'its journal')
  if (options.store === 'memory')
    throw new RelayError('settings', 'RELAY_STORE is memory: only relay serve itself can read that journal')
  const [folder, store] = [profileFolder(options), storeOf(options)]
  if (!mayHaveData(store, folder))
    throw new RelayError(
      'no_match',
      `Profile ${profile} has no journal yet. ${startCommand({ profile })} creates it`,
    )
  // A keychain holds only tokens.
  const database = await openDatabase({ kind: store, folder, create: false })
  return {
    output,
    journal: new Journal(database.sql),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/**
 * Waits until the profile has a journal, which its first instance makes.
 * @throws AbortError when `signal` aborts.
 */
export async function awaitJournal(
  { options }: Pick<Attached, 'options'>,
  signal: Cancellable,
): Promise<void> {
  while (isJournalMissing({ options })) await sleep(POLL_MS, signal)
}

/** Whether the profile can have a journal, and has none yet. */
export function isJournalMissing({ options }: Pick<Attached, 'options'>): boolean {
  return options.store !== 'memory' && !mayHaveData(storeOf(options), profileFolder(options))
}
