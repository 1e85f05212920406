import { randomUUID } from 'node:crypto'
import type { Clock } from '../base/time.js'
import type { Store } from './contract.js'

/** A lock that this process holds, among all processes that have the same database open. */
export interface Lease {
  /** When it ends by itself, as it must if its process crashes. Milliseconds. */
  readonly end: number
  /** @throws RelayError `storage` */
  release(): Promise<void>
}

/** Takes the lock `key` for `lifetime` milliseconds; undefined while another holds it. @throws RelayError `storage` */
export async function takeLease(
  store: Pick<Store, 'putIfAbsent' | 'write'>,
  key: string,
  { lifetime, clock }: { readonly lifetime: number; readonly clock: Clock },
): Promise<Lease | undefined> {
  const owner = randomUUID()
  const end = clock() + lifetime
  if (!(await store.putIfAbsent(key, owner, { expiresAt: end }))) return undefined
  return {
    end,
    async release() {
      await store.write([{ type: 'delete', key }], [{ key, value: owner }])
    },
  }
}
