import { RelayError } from '../../base/errors.js'
import type { Journal } from '../../journal/journal.js'
import { openJournal } from '../../journal/open.js'
import { databaseExists, openDatabase } from '../../store/open.js'
import type { Output } from '../output/output.js'
import { profileFolder } from '../settings/complete.js'
import type { Prepared } from '../settings/prepare.js'

/** A profile's journal, open for reading. */
export interface JournalReader extends AsyncDisposable {
  readonly output: Output
  readonly journal: Journal
}

/**
 * Opens the journal of the profile, whether its instance runs or not; it sees what the instance writes from then on.
 * @throws RelayError `no_match` when the profile has no journal yet, unless `allowMissing`; `settings` for a store that other
 * processes cannot read; `storage`.
 */
export async function openJournalReader(
  { output, options }: Prepared,
  { allowMissing = false } = {},
): Promise<JournalReader> {
  const { store, profile } = options
  if (store === 'memory')
    throw new RelayError('settings', 'RELAY_STORE is memory: only relay serve itself can read that journal')
  const folder = profileFolder(options)
  if (!allowMissing && !databaseExists(folder))
    throw new RelayError('no_match', `Profile ${profile} has no journal yet. relay serve creates it`)
  // A keychain holds only tokens.
  const database = await openDatabase({ kind: 'file', folder })
  return {
    output,
    journal: openJournal(database.sql, { log: output.log }),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
