import { randomBytes } from 'node:crypto'
import type { Log } from '../base/log.js'
import { Secret } from '../base/secret.js'
import type { OAuthClient, Settings } from '../base/settings.js'
import type { Relay } from '../relay.js'
import { saveSandboxClient, lastSandboxUrl } from '../sandbox/client.js'
import type { Sandbox } from '../sandbox/start.js'

/** Settings of a relay that starts a sandbox and uses it as its code host. */
export interface SandboxSettings extends Omit<Settings, 'provider' | 'providerUrl'> {
  /** 0: any free port. */
  readonly sandboxPort: number
}

/** A sandbox, the OAuth client it accepts, and the settings that make it the code host. */
export interface EmbeddedSandbox {
  readonly sandbox: Sandbox
  readonly client: OAuthClient
  readonly settings: Settings
}

/** Starts the sandbox, which is loaded only here. */
export async function startEmbeddedSandbox(
  { sandboxPort: port, ...given }: SandboxSettings,
  place: { readonly url: string },
  log: Log,
): Promise<EmbeddedSandbox> {
  const { startSandbox } = await import('../sandbox/start.js')
  const client = { id: 'relay-sandbox', secret: new Secret(randomBytes(24).toString('hex')) }
  const sandbox = await startSandbox({
    clientId: client.id,
    clientSecret: client.secret,
    webhook: { url: () => `${place.url}/webhook`, secret: given.webhookSecrets.current },
    port,
    log,
  })
  const settings = { ...given, provider: 'sandbox', providerUrl: sandbox.url, oauthClient: client } as const
  return { sandbox, client, settings }
}

/**
 * Revokes the tokens of earlier sandboxes of this profile, which a new sandbox does not know, and stores the client for
 * other commands.
 */
export async function registerSandbox(
  { database, tokens }: Relay,
  { sandbox, client }: EmbeddedSandbox,
): Promise<void> {
  const { secrets } = database
  const gone = new Set([sandbox.url, await lastSandboxUrl(secrets)])
  for (const { userId, origin } of await tokens.owners()) if (gone.has(origin)) await tokens.revoke(userId)
  await saveSandboxClient(secrets, client, sandbox.url)
}
