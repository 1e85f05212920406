import { Secret } from '../base/secret.js'
import type { OAuthClient } from '../base/settings.js'
import type { Store } from '../store/kv.js'
import { isText, shape } from '../json/shape.js'

/** Store key of the sandbox's OAuth client, in the profile's store. */
const KEY = 'sandbox:client'

interface ClientRecord {
  readonly id: string
  readonly secret: string
  readonly url: string
}

const parseClient = shape<ClientRecord>({ id: isText, secret: isText, url: isText })

/** Stores the OAuth client of a sandbox for the other commands of the profile. */
export async function saveSandboxClient(
  store: Store,
  { id, secret }: OAuthClient,
  url: string,
): Promise<void> {
  await store.put(KEY, { id, secret: secret.reveal(), url })
}

/** Finds the OAuth client of the sandbox at this address, if a relay of this profile started it. */
export async function findSandboxClient(store: Store, url: string): Promise<OAuthClient | undefined> {
  const client = await read(store)
  return client?.url === url ? { id: client.id, secret: new Secret(client.secret) } : undefined
}

/** Address of the sandbox that this profile started last. */
export async function lastSandboxUrl(store: Store): Promise<string | undefined> {
  return (await read(store))?.url
}

async function read(store: Store): Promise<ClientRecord | undefined> {
  return parseClient(await store.get(KEY))
}
