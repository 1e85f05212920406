import path from 'node:path'
import type { Entry } from '../../src/journal/types.js'
import { Journal } from '../../src/journal/journal.js'
import { openDatabase } from '../../src/store/open.js'
import { SECRET } from './delivery.js'
import { Program } from './program.js'
import { entriesOf } from './journal.js'

/**
 * The built `relay serve` on a free port, for GitHub's deliveries signed with {@link SECRET}. `home` is its data folder;
 * `wrapper` as in {@link Program}, `flags` are further ones.
 */
export function serve(home: string, wrapper?: readonly string[], flags: readonly string[] = []): Program {
  const env = { RELAY_HOME: home, RELAY_WEBHOOK_SECRET: SECRET }
  return new Program(['serve', '--port', '0', '--json', ...flags], env, wrapper)
}

/** All that the journal below that data folder holds, oldest first. */
export async function journalOf(home: string): Promise<Entry[]> {
  await using database = await openDatabase({ kind: 'file', folder: path.join(home, 'default') })
  return await entriesOf(new Journal(database.sql))
}

export function textOf({ body }: Entry): string {
  return Buffer.from(body).toString()
}
