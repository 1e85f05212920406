import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { createEngine } from './engine.js'
import { checkSchema, makeSchema } from './schema.js'
import type { Sql } from './sql.js'
import { PAGE_BYTES, SqliteConnection } from './sqlite.js'
import { isUnreadable, storageError, toFailure } from './storage-error.js'

/** Where the number of pages stands in a file's header (SQLite file format, section 1.3). */
const PAGE_COUNT_AT = 28

/**
 * Opens a copy of a database that may be damaged, to read what can be read. The copy, with its log, is made in `folder`; `file`
 * is not changed. What a damaged schema should be is taken from a new database.
 * @throws RelayError `storage` when it is another program's, or a newer relay's; and the file system's errors.
 */
export function openCopy(file: string, folder: string): Sql {
  const copy = join(folder, 'copy.db')
  copyFileSync(file, copy, constants.COPYFILE_FICLONE)
  // The file's own mode may forbid to write.
  chmodSync(copy, 0o600)
  if (existsSync(`${file}-wal`)) copyFileSync(`${file}-wal`, `${copy}-wal`, constants.COPYFILE_FICLONE)
  try {
    return createEngine(open(copy), { file })
  } catch (error) {
    if (!isUnreadable(toFailure(error))) throw storageError(toFailure(error), file)
  }
  try {
    replaceSchema(copy, join(folder, 'new.db'))
    return createEngine(open(copy), { file })
  } catch (error) {
    throw storageError(toFailure(error), file)
  }
}

function open(file: string): SqliteConnection {
  const connection = new SqliteConnection(file)
  try {
    // Without this SQLite reads nothing of a file that is shorter than it should be.
    connection.exec('PRAGMA writable_schema = ON')
    checkSchema(connection)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Puts the pages of a new database's schema in place of those of `file`: each relay makes them in the same places. */
function replaceSchema(file: string, newFile: string): void {
  const connection = new SqliteConnection(newFile)
  connection.configure({ isEmpty: true })
  makeSchema(connection)
  const pages = connection.rows<{ pageno: number }>(`SELECT pageno FROM dbstat WHERE name = 'sqlite_schema'`)
  connection.checkpoint()
  const [from, to] = [openSync(newFile, 'r'), openSync(file, 'r+')]
  const bytes = Buffer.alloc(PAGE_BYTES)
  for (const { pageno } of pages) {
    const at = (pageno - 1) * PAGE_BYTES
    readSync(from, bytes, 0, PAGE_BYTES, at)
    if (pageno === 1) bytes.writeUInt32BE(Math.ceil(fstatSync(to).size / PAGE_BYTES), PAGE_COUNT_AT)
    writeSync(to, bytes, 0, PAGE_BYTES, at)
  }
  closeSync(from)
  closeSync(to)
  connection.close()
}
