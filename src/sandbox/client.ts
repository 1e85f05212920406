import { z } from 'zod'
import { Secret } from '../base/secret.js'
import type { OAuthClient } from '../base/settings.js'
import type { Store } from '../store/contract.js'

/** Part of what a profile keeps. */
const KEY = 'sandbox-client'

const schema = z.object({ id: z.string(), secret: z.string(), url: z.string() })

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

async function read(store: Store): Promise<z.infer<typeof schema> | undefined> {
  return schema.safeParse(await store.get(KEY)).data
}
