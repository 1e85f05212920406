import { Secret } from '../base/secret.js'
import type { OAuthClient } from '../base/settings.js'
import type { Store } from '../store/kv.js'

/**
 * OAuth client of every sandbox that `relay serve` starts. Its secret protects nothing: anyone who can reach the
 * sandbox can sign in by device flow or make a personal token there, without a secret.
 */
export const SANDBOX_CLIENT: OAuthClient = { id: 'relay-sandbox', secret: new Secret('relay-sandbox-secret') }

/** Store key of the address of the sandbox that the profile started last. */
const KEY = 'sandbox:address'

export async function saveSandboxUrl(store: Store, url: string): Promise<void> {
  await store.put(KEY, url)
}

/** Address of the sandbox that this profile started last. Only its tokens may be dropped, never a real code host's. */
export async function lastSandboxUrl(store: Store): Promise<string | undefined> {
  const url = await store.get(KEY)
  return typeof url === 'string' ? url : undefined
}

/** Finds the OAuth client of the sandbox at this address, if a relay of this profile started it. */
export async function findSandboxClient(store: Store, url: string): Promise<OAuthClient | undefined> {
  return (await lastSandboxUrl(store)) === url ? SANDBOX_CLIENT : undefined
}
