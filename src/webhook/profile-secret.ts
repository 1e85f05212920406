import { randomBytes } from 'node:crypto'
import { Secret } from '../base/secret.js'
import type { Store } from '../store/kv.js'
import type { Tx } from '../store/sql.js'

/** Its record: plain on SQLite, so that deliveries are verified while the keychain is locked; encrypted in a shared store. */
const KEY = 'webhook-secret'

/** The webhook secret that relay made for the profile; undefined if it has made none. @throws RelayError `storage` */
export async function readProfileSecret(store: Pick<Store, 'get'> | undefined): Promise<Secret | undefined> {
  const value = await store?.get(KEY)
  return typeof value === 'string' ? new Secret(value) : undefined
}

/** The profile's webhook secret, which is `made`, by default a new one, if it had none. @throws RelayError `storage` */
export async function makeProfileSecret(
  store: Pick<Store, 'update'>,
  made: Secret = new Secret(randomBytes(32).toString('hex')),
): Promise<Secret> {
  const value = await store.update(function* (records): Tx<string> {
    const found = yield* records.get(KEY)
    if (typeof found === 'string') return found
    yield* records.put(KEY, made.reveal())
    return made.reveal()
  })
  return new Secret(value)
}
