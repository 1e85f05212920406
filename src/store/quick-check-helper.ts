// The program that checks a database, in a process of its own: SQLite cannot be interrupted while it does, but a process can.
import { SqliteConnection } from './sqlite.js'
import { toFailure } from './storage-error.js'

const [, , file = ''] = process.argv
process.stdout.write(check())

function check(): string {
  try {
    const [row] = new SqliteConnection(file).rows<{ quick_check: string }>('PRAGMA quick_check(1)')
    return row?.quick_check ?? ''
  } catch (error) {
    return toFailure(error).message
  }
}
