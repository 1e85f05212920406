import type { Log } from '../base/log.js'
import type { Settings } from '../base/settings.js'
import type { Relay } from '../relay.js'
import { lastSandboxUrl, SANDBOX_CLIENT, saveSandboxUrl } from '../sandbox/client.js'
import type { Sandbox } from '../sandbox/sandbox.js'

/** Settings of a relay that starts a sandbox and uses it as its code host. */
export interface SandboxSettings extends Omit<Settings, 'provider' | 'providerUrl'> {
  /** 0: any free port. */
  readonly sandboxPort: number
}

/** The settings of a relay, and the sandbox that is its code host, if it has one. */
export interface EmbeddedSandbox {
  readonly settings: Settings
  readonly sandbox: Sandbox | undefined
}

/** Starts the sandbox, which is loaded only here. */
export async function startEmbeddedSandbox(
  { sandboxPort: port, ...given }: SandboxSettings,
  url: string,
  log: Log,
): Promise<EmbeddedSandbox> {
  const { startSandbox } = await import('../sandbox/sandbox.js')
  const client = SANDBOX_CLIENT
  const sandbox = await startSandbox({
    client: { id: client.id, secret: client.secret.reveal() },
    webhook: { url: () => `${url}/webhook`, secret: given.webhookSecrets.current },
    port,
    log,
  })
  const settings = { ...given, provider: 'sandbox', providerUrl: sandbox.url, oauthClient: client } as const
  return { sandbox, settings }
}

/**
 * Revokes the tokens of earlier sandboxes of this profile, which a new sandbox does not know, and stores its address for other
 * commands.
 */
export async function registerSandbox({ database: { secrets }, tokens }: Relay, url: string): Promise<void> {
  const gone = new Set([url, await lastSandboxUrl(secrets)])
  for (const { userId, origin } of await tokens.owners()) if (gone.has(origin)) await tokens.revoke(userId)
  await saveSandboxUrl(secrets, url)
}
