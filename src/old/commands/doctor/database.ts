import { randomBytes } from 'node:crypto'
import { RelayError } from '../../../base/errors.js'
import type { Store } from '../../../store/kv.js'
import { tilde } from '../../output/display-path.js'
import { databaseFile } from '../../../store/open.js'
import { VERSION } from '../../../store/schema.js'
import type { Sql } from '../../../store/sql.js'
import type { CheckContext } from './context.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/** The lifetime of the test record, in case the check is interrupted. */
const RECORD_TTL_MS = 60_000

/** How the key of the test record begins. */
export const TEST_PREFIX = 'doctor:'

/** Whether the database can be opened, is not damaged as far as SQLite finds, and takes and returns a record. */
export async function checkDatabase(
  { store, options, folder }: CheckContext,
  problem: string | undefined,
  sql: Sql | undefined,
): Promise<CheckResult> {
  const file = databaseFile(folder)
  if (options.store === 'memory') return skip('memory: nothing is stored')
  if (problem !== undefined) return fail(problem, `ls -ld ${tilde(folder)}; df -h ${tilde(folder)}`)
  if (!store || !sql) return skip('nothing is stored yet')
  const [found] = await sql.query<{ quick_check: string }>('PRAGMA quick_check(1)')
  if (found?.quick_check !== 'ok')
    return fail(
      `${tilde(file)} is damaged: ${found?.quick_check}`,
      `stop relay, then sqlite3 ${tilde(file)} .recover > relay.sql`,
    )
  await roundTrip(store, TEST_PREFIX)
  return ok(`can write and read; schema version ${VERSION}; not damaged`)
}

/** The same for the keychain, if it holds the tokens. */
export async function checkKeychain({ secrets: store, options }: CheckContext): Promise<CheckResult> {
  if (options.store !== 'keychain') return skip('not used (--store keychain uses it)')
  if (!store) return skip('nothing is stored yet')
  await roundTrip(store, 'refresh:doctor-')
  return ok('unlocked; can write and read')
}

/** Writes a record and takes it back. @throws RelayError `storage`. */
export async function roundTrip(store: Store, prefix: string): Promise<void> {
  const id = randomBytes(8).toString('hex')
  const key = `${prefix}${id}`
  await store.put(key, id, Date.now() + RECORD_TTL_MS)
  const value = await store.take(key)
  if (value !== id) throw new RelayError('storage', 'The store did not return the record that was written')
}
