import type { StoreKind } from '../base/settings.js'
import { silentLog, type Log } from '../base/log.js'
import { type Clock, systemClock } from '../base/time.js'
import type { Database } from './database.js'
import type { Engine } from './engine.js'
import { createStore } from './kv.js'
import { createMemoryEngine } from './memory.js'
import { createTable } from './table.js'

export interface OpenOptions {
  readonly kind: StoreKind
  /** The profile's folder; made (0700) when it is not there. Unused by `memory`. */
  readonly folder: string
  readonly clock?: Clock | undefined
  readonly log?: Log | undefined
}

/**
 * Opens a profile's database. Several processes may have the same folder open.
 * @throws RelayError `storage`, naming the folder, when it cannot be made or holds something that is no database.
 */
export async function openDatabase({
  kind,
  folder,
  clock = systemClock,
  log = silentLog,
}: OpenOptions): Promise<Database> {
  const engine = kind === 'memory' ? createMemoryEngine() : await openFile(folder, log)
  return createDatabase(engine, clock)
}

/** lmdb is native code: it is loaded by those that need it. */
async function openFile(folder: string, log: Log): Promise<Engine> {
  const { openFileEngine } = await import('./file.js')
  return openFileEngine(folder, log)
}

function createDatabase(engine: Engine, clock: Clock): Database {
  return {
    store: createStore(engine, clock),
    table: (name, options) => createTable(engine, name, options),
    commit: (writes) => engine.write(writes),
    transact: (decide) => engine.transact(decide),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  }
}
