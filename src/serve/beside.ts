import { randomBytes } from 'node:crypto'
import type { Log } from '../base/log.js'
import { Secret } from '../base/secret.js'
import type { OAuthClient, Settings } from '../base/settings.js'
import type { Relay } from '../relay.js'
import { keepSandboxClient, lastSandboxUrl } from '../sandbox/client.js'
import { startSandbox, type Sandbox } from '../sandbox/start.js'

/** A sandbox, the settings that make it the provider, and the OAuth client it knows. */
export interface Beside {
  readonly sandbox: Sandbox
  readonly settings: Settings
  readonly client: OAuthClient
}

export async function startBeside(
  given: Settings,
  port: number,
  place: { readonly url: string },
  log: Log,
): Promise<Beside> {
  const client = { id: 'relay-sandbox', secret: new Secret(randomBytes(24).toString('hex')) }
  const sandbox = await startSandbox({
    clientId: client.id,
    clientSecret: client.secret,
    webhook: { url: () => `${place.url}/webhook`, secret: given.webhookSecrets.current },
    port,
    log,
  })
  const settings = { ...given, provider: 'sandbox', providerUrl: sandbox.url, oauthClient: client } as const
  return { sandbox, settings, client }
}

/**
 * A new sandbox knows none of the tokens an earlier one of this profile gave out, so they go. The client it was started
 * with is left where the other commands find it.
 */
export async function renewSandbox({ database, tokens }: Relay, { sandbox, client }: Beside): Promise<void> {
  const { store } = database
  const gone = new Set([sandbox.url, await lastSandboxUrl(store)])
  for (const key of await store.list('token:')) {
    const holder = await tokens.get(key.slice('token:'.length))
    if (holder && gone.has(holder.origin)) await tokens.revoke(holder.userId)
  }
  await keepSandboxClient(store, client, sandbox.url)
}
