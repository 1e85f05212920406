import { Secret } from '../base/secret.js'
import type { OAuthClient } from '../base/settings.js'
import type { Store } from '../store/contract.js'
import { isText, shape } from '../store/shape.js'

/** Part of what a profile keeps. */
const KEY = 'sandbox-client'

interface ClientRow {
  readonly id: string
  readonly secret: string
  readonly url: string
}

const parseRow = shape<ClientRow>({ id: isText, secret: isText, url: isText })

/** Leaves the OAuth client a sandbox was started with where the other commands of the profile find it. */
export async function keepSandboxClient(
  store: Store,
  { id, secret }: OAuthClient,
  url: string,
): Promise<void> {
  await store.put(KEY, { id, secret: secret.reveal(), url })
}

/** The OAuth client of the sandbox at this address, if a relay of this profile started it. */
export async function findSandboxClient(store: Store, url: string): Promise<OAuthClient | undefined> {
  const row = await read(store)
  return row?.url === url ? { id: row.id, secret: new Secret(row.secret) } : undefined
}

/** The address of the sandbox this profile last had. */
export async function lastSandboxUrl(store: Store): Promise<string | undefined> {
  return (await read(store))?.url
}

async function read(store: Store): Promise<ClientRow | undefined> {
  return parseRow(await store.get(KEY))
}
