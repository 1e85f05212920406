import { RelayError } from '../../src/base/errors.js'
import type { Database, TableWrite } from '../../src/store/database.js'

/** A database whose commits can be made to fail: at once, or past their time, when they may still `land`. */
export function breakable(database: Database) {
  const late: (readonly TableWrite[])[] = []
  let mode: 'works' | 'fails' | 'stalls' = 'works'
  return {
    table: database.table.bind(database),
    store: database.store,
    async commit(writes: readonly TableWrite[]): Promise<void> {
      if (mode === 'works') return database.commit(writes)
      if (mode === 'stalls') late.push(writes)
      await new Promise(setImmediate)
      throw new RelayError('storage', 'no room')
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
    now: (next: typeof mode) => void (mode = next),
    async land(): Promise<void> {
      for (const writes of late.splice(0)) await database.commit(writes)
    },
  } satisfies Database & Record<string, unknown>
}
