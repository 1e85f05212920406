import { RelayError } from '../../src/base/errors.js'
import type { Database } from '../../src/store/database.js'

/** A database whose writes can be made to fail: at once, or past their time, when they have been carried out after all. */
export function breakable(database: Database) {
  let mode: 'works' | 'fails' | 'is late' = 'works'
  async function writing<T>(write: () => Promise<T>): Promise<T> {
    if (mode === 'works') return write()
    if (mode === 'is late') await write()
    await new Promise(setImmediate)
    throw new RelayError('storage', 'no room')
  }
  return {
    table: database.table.bind(database),
    store: database.store,
    commit: (writes) => writing(() => database.commit(writes)),
    transact: (decide) => writing(() => database.transact(decide)),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
    now: (next: typeof mode) => void (mode = next),
  } satisfies Database & Record<string, unknown>
}
