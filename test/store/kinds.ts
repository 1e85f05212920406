import type { Clock } from '../../src/base/time.js'
import type { Database } from '../../src/store/database.js'
import { openDatabase, type OpenOptions } from '../../src/store/open.js'
import { emptyFolder } from '../helpers/context.js'
import { has } from '../kit/needs.js'
import { sharedPostgres } from '../helpers/postgres.js'

/** The ways to open SQLite that all must do the same: in memory, in a file, and in a file by way of a thread. */
export const EMBEDDED = ['memory', 'file', 'thread'] as const
type Embedded = (typeof EMBEDDED)[number]

export type Kind = Embedded | 'postgres'

/** The same on each engine. */
export const KINDS: readonly Kind[] = has(
  'postgres',
  'the contracts of the store and the journal on PostgreSQL',
)
  ? [...EMBEDDED, 'postgres']
  : EMBEDDED

export function optionsOf(kind: Embedded, folder: string): OpenOptions {
  return kind === 'thread' ? { kind: 'file', folder, thread: true } : { kind, folder }
}

/** Opens the database of the profile that has this folder. On a server, where no folder is used, its name alone counts. */
export async function openKind(kind: Kind, folder = emptyFolder(), clock?: Clock): Promise<Database> {
  if (kind !== 'postgres') return openDatabase({ ...optionsOf(kind, folder), clock })
  return openDatabase({ kind: (await sharedPostgres()).store, folder, clock })
}
