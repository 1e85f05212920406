import { closeSync, existsSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { createEngine, retryWhileBusy } from './engine.js'
import { createRoomCheck } from './room.js'
import { checkSchema, makeSchema } from './schema.js'
import type { Sql } from './sql.js'
import { SqliteConnection } from './sqlite.js'
import { cannotMake, storageError, toFailure } from './storage-error.js'

export const MEMORY = ':memory:'

/**
 * Opens the database in this thread; makes it, for its owner alone (0600), when it is missing. `file` may be {@link MEMORY};
 * `patience` is how many milliseconds to wait while another process holds it.
 * @throws RelayError `storage` that names the file, why it cannot be used, and what to do.
 */
export async function openEngine(file: string, patience?: number): Promise<Sql> {
  let connection: SqliteConnection | undefined
  try {
    if (file !== MEMORY) makeFile(file)
    const opened = (connection = new SqliteConnection(file))
    await retryWhileBusy(() => {
      // First, because configuring writes into the file, which may be another program's.
      const state = checkSchema(opened)
      opened.configure({ isEmpty: state === 'empty' })
      if (state !== 'current') makeSchema(opened)
    }, patience)
    const hasRoom = file === MEMORY ? undefined : createRoomCheck(dirname(file), () => opened.freeBytes())
    return createEngine(opened, { file, patience, ...(hasRoom && { hasRoom }) })
  } catch (error) {
    connection?.close()
    throw storageError(toFailure(error), file)
  }
}

/**
 * Makes the file if it is missing: SQLite would make it readable for others, and gives its other files the same mode. One that
 * is there is not opened, since closing it would end the locks that other connections of this process have on it.
 * @throws DatabaseFailure
 */
function makeFile(file: string): void {
  if (existsSync(file)) return
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!existsSync(file)) throw cannotMake(error)
  }
}
