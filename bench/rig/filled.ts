import path from 'node:path'
import { openJournal } from '../../src/journal/open.js'
import { openDatabase } from '../../src/store/open.js'
import { type Folder, temporaryFolder } from './folder.js'
import { SMALL_PUSH } from './push.js'

/** They share a flush. */
const BATCH = 500

/** A data folder whose journal has `count` entries. */
export async function filled(count: number, payload: Uint8Array = SMALL_PUSH): Promise<Folder> {
  const home = temporaryFolder()
  await using database = await openDatabase({ kind: 'file', folder: path.join(home.path, 'default') })
  const journal = openJournal(database.sql)
  const receivedAt = Date.now()
  for (let n = 0; n < count; n += BATCH) {
    const batch = Array.from({ length: BATCH }, (_, i) =>
      journal.append({
        receivedAt,
        provider: 'github',
        event: 'push',
        deliveryId: `filled-${n + i}`,
        hookId: '',
        headers: [['Content-Type', 'application/json']],
        body: payload,
        verifiedBy: 'current',
        action: null,
        repo: 'octo/demo',
        number: null,
      }),
    )
    await Promise.all(batch)
  }
  return home
}
