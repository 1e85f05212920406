import { RelayError } from '../../src/base/errors.js'
import type { Database } from '../../src/store/open.js'
import type { Sql } from '../../src/store/sql.js'

/** The database with another way to write transactions. Its store still writes as before. */
export function withTransaction(database: Database, transaction: Sql['transaction']): Database {
  const close = (): PromiseLike<void> => database[Symbol.asyncDispose]()
  return {
    expectStep: database.expectStep,
    store: database.store,
    sql: { ...database.sql, transaction, [Symbol.asyncDispose]: close },
    [Symbol.asyncDispose]: close,
  }
}

/** A database whose transactions can be made to fail: at once, or past their limit, after which they succeed all the same. */
export function breakable(database: Database) {
  let mode: 'works' | 'fails' | 'is late' = 'works'
  const transaction: Sql['transaction'] = async (steps, options = {}) => {
    if (mode === 'works') return database.sql.transaction(steps, options)
    if (mode === 'is late') {
      const rows = await database.sql.transaction(steps)
      // After the failure, which comes in the next turn of the event loop.
      if (rows) setImmediate(() => setImmediate(() => options.onLate?.(rows)))
    }
    await new Promise(setImmediate)
    throw new RelayError('storage', 'no room')
  }
  return {
    ...withTransaction(database, transaction),
    now: (next: typeof mode) => void (mode = next),
  }
}
