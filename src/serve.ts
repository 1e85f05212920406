import type { HttpBindings } from '@hono/node-server'
import { randomBytes } from 'node:crypto'
import { sleep } from './base/abort.js'
import { Disposal } from './base/disposal.js'
import { silentLog, type Log } from './base/log.js'
import { Secret } from './base/secret.js'
import type { Settings } from './base/settings.js'
import { listen } from './http/listen.js'
import { takeInstance, type Instance } from './instance/instance.js'
import { createRelay, type Relay, type RelayOptions } from './relay.js'
import { startSandbox, type Sandbox } from './sandbox/start.js'

export interface ServeOptions extends Omit<RelayOptions, 'prove'> {
  /** Starts the emulated code host beside the relay on this port (0: any); it then is the provider. */
  readonly sandboxPort?: number | undefined
}

/** The running instance of a profile. Disposing of it lets requests under way finish, then frees port and profile. */
export interface Serving extends AsyncDisposable {
  readonly url: string
  readonly relay: Relay
  /** As given, with the sandbox's address and client where one was started. */
  readonly settings: Settings
  /** The code host beside it, which has not sent anything yet: `ping()` announces its webhook. */
  readonly sandbox: Sandbox | undefined
}

/** Expired records stop existing for readers at once; sweeping only gives their space back, so it can be leisurely. */
const SWEEP_EVERY_MS = 60_000

/**
 * Starts a relay: opens its data, listens, and takes the profile.
 * @throws RelayError `unavailable` when the port is in use or the profile is being served, `storage` when its data
 * cannot be opened, `settings` for a provider address that is neither https nor loopback.
 */
export async function serve(given: Settings, options: ServeOptions = {}): Promise<Serving> {
  const { log = silentLog, sandboxPort } = options
  await using closing = new Disposal()
  let url = ''
  let instance: Instance | undefined

  const client = { id: 'relay-sandbox', secret: new Secret(randomBytes(24).toString('hex')) }
  const sandbox =
    sandboxPort === undefined
      ? undefined
      : closing.use(
          await startSandbox({
            clientId: client.id,
            clientSecret: client.secret,
            webhook: { url: () => `${url}/webhook`, secret: given.webhookSecrets.current },
            port: sandboxPort,
            log,
          }),
        )
  const settings: Settings = sandbox
    ? { ...given, provider: 'sandbox', providerUrl: sandbox.url, oauthClient: client }
    : given

  const relay = closing.use(
    await createRelay(settings, { ...options, prove: (text) => instance?.prove(text) }),
  )
  if (sandbox) await forgetTokens(relay)
  const gate = createGate(relay)
  const listener = await listen(gate.fetch, { host: settings.host, port: settings.port, log })
  closing.defer(() => listener.close())
  url = listener.url
  relay.address = url
  const held = await takeInstance(relay.database.store, {
    pid: process.pid,
    url,
    provider: settings.provider,
    providerUrl: settings.providerUrl,
  })
  instance = held
  closing.defer(() => held.release())
  gate.open()
  closing.use(startSweeping(relay, log))
  const owner = closing.move()
  return { url, relay, settings, sandbox, [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose]() }
}

/**
 * Lets requests in only once the profile is ours: one that comes before waits. Without it a second relay that finds
 * our row before we can prove it would take the profile over.
 */
function createGate(relay: Relay): { fetch: typeof pass; open: () => void } {
  const pass = (request: Request, env: HttpBindings): Response | Promise<Response> =>
    relay.app.fetch(request, env)
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  let fetch: typeof pass = async (request, env) => {
    await opened
    return pass(request, env)
  }
  return {
    fetch: (request, env) => fetch(request, env),
    open: () => {
      fetch = pass
      open()
    },
  }
}

/** A new sandbox knows none of the tokens an earlier one gave out. */
async function forgetTokens({ database, tokens }: Relay): Promise<void> {
  for (const key of await database.store.list('token:')) await tokens.revoke(key.slice('token:'.length))
}

function startSweeping({ database }: Relay, log: Log): AsyncDisposable {
  const stop = new AbortController()
  const stopped = sweepUntil(stop.signal)
  async function sweepUntil(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(SWEEP_EVERY_MS, { signal }).catch(() => {})
      if (!signal.aborted)
        await database.store.sweep().catch((error: unknown) => log.error('sweep failed', error))
    }
  }
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await stopped
    },
  }
}
