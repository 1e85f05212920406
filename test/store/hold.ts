import { databaseFile } from '../../src/store/open.js'
import { SqliteConnection } from '../../src/store/sqlite.js'

/** Takes the lock on writing of the database in `folder`; until it is released no other connection can commit. Throws while another has it. */
export function holdLock(folder: string): { release(): void } & Disposable {
  const connection = new SqliteConnection(databaseFile(folder))
  try {
    connection.exec('BEGIN IMMEDIATE')
  } catch (error) {
    connection.close()
    throw error
  }
  const release = (): void => connection.close()
  return { release, [Symbol.dispose]: release }
}
