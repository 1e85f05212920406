import { randomBytes } from 'node:crypto'
import { RelayError } from '../../base/errors.js'
import type { Store } from '../../store/contract.js'
import { tilde } from '../place.js'
import type { Facts } from './facts.js'
import { none, ok, wrong, type Verdict } from './finding.js'

/** What is written is gone after this, even when the check is cut off. In milliseconds. */
const LEFTOVER_LIMIT = 60_000

/** Whether the store takes a record, gives it back, and forgets it. */
export async function checkStore(
  { store, kind, folder }: Facts,
  problem: string | undefined,
): Promise<Verdict> {
  if (kind === 'memory') return none('memory: nothing is kept')
  if (problem !== undefined) return wrong(problem, `ls -ld ${tilde(folder)}; df -h ${tilde(folder)}`)
  if (!store) return none('nothing is kept yet')
  await roundTrip(store, 'doctor:')
  return ok('opens, writes and reads')
}

/** The same for the keychain, which keeps the tokens where it is chosen. */
export async function checkKeychain({ store, kind }: Facts): Promise<Verdict> {
  if (kind !== 'keychain') return none('not used: --store keychain would')
  if (!store) return none('nothing is kept yet')
  await roundTrip(store, 'refresh:doctor-')
  return ok('unlocked; takes and gives')
}

/** @throws RelayError `storage`. */
async function roundTrip(store: Store, prefix: string): Promise<void> {
  const id = randomBytes(8).toString('hex')
  const key = `${prefix}${id}`
  await store.put(key, id, { expiresAt: Date.now() + LEFTOVER_LIMIT })
  const value = await store.take(key)
  if (value !== id) throw new RelayError('storage', 'The store does not give back what was put into it')
}
