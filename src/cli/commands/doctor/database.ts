import { randomBytes } from 'node:crypto'
import { RelayError } from '../../../base/errors.js'
import type { Store } from '../../../store/contract.js'
import { tilde } from '../../output/display-path.js'
import { databaseFile } from '../../../store/open.js'
import { quickCheck, type QuickCheckOptions } from '../../../store/quick-check.js'
import { VERSION } from '../../../store/schema.js'
import { type CheckContext, commandFor } from './context.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/** The lifetime of the test record, in case the check is interrupted. */
const RECORD_TTL_MS = 60_000

/** How the key of the test record begins. */
export const TEST_PREFIX = 'doctor:'

/** Whether the database can be opened, is not damaged as far as SQLite finds, and takes and returns a record. */
export async function checkDatabase(
  { store, options, folder }: CheckContext,
  problem: string | undefined,
  limits: QuickCheckOptions,
): Promise<CheckResult> {
  const file = databaseFile(folder)
  if (options.store === 'memory') return skip('memory: nothing is stored')
  if (problem !== undefined) return fail(problem, `ls -ld ${tilde(folder)}; df -h ${tilde(folder)}`)
  if (!store) return skip('nothing is stored yet')
  const found = await quickCheck(file, limits)
  if (found !== undefined && found !== 'ok')
    return fail(
      `${tilde(file)} is damaged: ${firstLine(found)}`,
      `stop relay, then ${commandFor(options, `doctor --salvage ${tilde(file)}`)}`,
    )
  await roundTrip(store, TEST_PREFIX)
  const version = `schema version ${VERSION}`
  if (found === undefined)
    return ok(`can write and read; ${version}; too large to be checked in ${limits.limit / 1000} s`)
  return ok(`can write and read; ${version}; not damaged`)
}

/** The same for the keychain, if it holds the tokens. */
export async function checkKeychain({ store, options }: CheckContext): Promise<CheckResult> {
  if (options.store !== 'keychain') return skip('not used (--store keychain uses it)')
  if (!store) return skip('nothing is stored yet')
  await roundTrip(store, 'refresh:doctor-')
  return ok('unlocked; can write and read')
}

/** Writes a record and takes it back. @throws RelayError `storage`. */
export async function roundTrip(store: Store, prefix: string): Promise<void> {
  const id = randomBytes(8).toString('hex')
  const key = `${prefix}${id}`
  await store.put(key, id, { expiresAt: Date.now() + RECORD_TTL_MS })
  const value = await store.take(key)
  if (value !== id) throw new RelayError('storage', 'The store did not return the record that was written')
}

/** What SQLite says first, without its heading. */
function firstLine(found: string): string {
  return found.split('\n').find((line) => !line.startsWith('***')) ?? found
}
