import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Log } from '../base/log.js'
import type { Settings } from '../base/settings.js'

/** The file of the LMDB store that development versions had before SQLite. */
const EARLIER_FILE = 'relay.mdb'

/** Warns of data in the profile's folder that an earlier development version wrote, and which is not read. */
export function warnOfEarlierData({ folder, store }: Pick<Settings, 'folder' | 'store'>, log: Log): void {
  const file = path.join(folder, EARLIER_FILE)
  if (store === 'memory' || !existsSync(file)) return
  log.warn(
    `data of an earlier development version in ${file} is not read. Delete the file if you do not need it`,
  )
}
