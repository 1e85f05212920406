import { existsSync } from 'node:fs'
import { RelayError } from '../../base/errors.js'
import type { Journal } from '../../journal/journal.js'
import { openJournal } from '../../journal/open.js'
import { openDatabase } from '../../store/open.js'
import type { Prepared } from '../globals.js'
import type { Output } from '../output.js'
import { profileFolder } from '../settings.js'

/** A profile's journal, opened to be read. */
export interface Reading extends AsyncDisposable {
  readonly output: Output
  readonly journal: Journal
}

/**
 * Opens the journal of the profile that the settings name, whether its instance runs or not; what that writes is seen as it
 * comes. This file brings the database with it, so commands load it by `import()` when they run.
 * @throws RelayError `no_match` when nothing has been received yet, unless it may come; `settings` for a store that no other
 * process can read; `storage`.
 */
export async function openReading({ output, options }: Prepared, { mayCome = false } = {}): Promise<Reading> {
  const { store, profile = 'default' } = options
  if (store === 'memory')
    throw new RelayError('settings', 'RELAY_STORE is memory: its journal is known to relay serve alone')
  const folder = profileFolder(options)
  if (!mayCome && !existsSync(folder))
    throw new RelayError('no_match', `Profile ${profile} has no journal yet: relay serve begins it`)
  // A keychain keeps tokens only.
  const database = await openDatabase({ kind: 'file', folder, log: output.log })
  return {
    output,
    journal: openJournal(database),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
