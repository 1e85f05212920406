import type { HttpBindings } from '@hono/node-server'
import { randomBytes } from 'node:crypto'
import { type Cancellable, sleep } from './base/abort.js'
import { Disposal } from './base/disposal.js'
import { silentLog, type Log } from './base/log.js'
import { toRelayError } from './base/errors.js'
import { Secret } from './base/secret.js'
import type { OAuthClient, Settings } from './base/settings.js'
import { listen } from './http/listen.js'
import { takeInstance, type Instance } from './instance/instance.js'
import { createRelay, type Relay, type RelayOptions } from './relay.js'
import { keepSandboxClient, lastSandboxUrl } from './sandbox/client.js'
import { startSandbox, type Sandbox } from './sandbox/start.js'

export interface ServeOptions extends Omit<RelayOptions, 'prove'>, Cancellable {
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

/** How long requests under way may take to finish: an action waits up to 25 s for the code host. */
const GRACE_MS = 30_000

/**
 * Starts a relay: opens its data, listens, and takes the profile.
 * @throws RelayError `unavailable` when the port is in use or the profile is being served, `storage` when its data
 * cannot be opened, `settings` for a provider address that is neither https nor loopback.
 */
export async function serve(given: Settings, options: ServeOptions = {}): Promise<Serving> {
  const { log = silentLog, sandboxPort, signal } = options
  await using closing = new Disposal()
  const place = { url: '' }
  const beside = sandboxPort === undefined ? undefined : await startBeside(given, sandboxPort, place, log)
  if (beside) closing.use(beside.sandbox)
  const settings = beside?.settings ?? given

  let instance: Instance | undefined
  const relay = closing.use(
    await createRelay(settings, { ...options, prove: (challenge) => instance?.prove(challenge) }),
  )
  const gate = createGate(relay)
  const listener = await listen(gate.fetch, {
    host: settings.host,
    port: settings.port,
    log,
    limits: { grace: GRACE_MS },
  })
  const { url } = listener
  place.url = relay.address = url
  instance = await takeProfile(relay, settings, url, signal).catch(async (error: unknown) => {
    await listener.close()
    throw error
  })
  // In this order: the profile is ours until the last request is answered.
  closing.use(heldBy(instance))
  closing.defer(() => listener.close())
  if (beside) await renewSandbox(relay, beside)
  gate.open()
  closing.use(startSweeping(relay, log))
  const owner = closing.move()
  const { sandbox } = beside ?? {}
  return { url, relay, settings, sandbox, [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose]() }
}

/** A sandbox, the settings that make it the provider, and the OAuth client it knows. */
interface Beside {
  readonly sandbox: Sandbox
  readonly settings: Settings
  readonly client: OAuthClient
}

async function startBeside(
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

function takeProfile(
  { database }: Relay,
  settings: Settings,
  url: string,
  signal: AbortSignal | undefined,
): Promise<Instance> {
  const { provider, providerUrl, publicUrl = url } = settings
  return takeInstance(database.store, { pid: process.pid, url, provider, providerUrl, publicUrl }, { signal })
}

function heldBy(instance: Instance): AsyncDisposable {
  return { [Symbol.asyncDispose]: () => instance.release() }
}

/**
 * A new sandbox knows none of the tokens an earlier one of this profile gave out, so they go. The client it was started
 * with is left where the other commands find it.
 */
async function renewSandbox({ database, tokens }: Relay, { sandbox, client }: Beside): Promise<void> {
  const { store } = database
  const gone = new Set([sandbox.url, await lastSandboxUrl(store)])
  for (const key of await store.list('token:')) {
    const holder = await tokens.get(key.slice('token:'.length))
    if (holder && gone.has(holder.origin)) await tokens.revoke(holder.userId)
  }
  await keepSandboxClient(store, client, sandbox.url)
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

function startSweeping({ database }: Relay, log: Log): AsyncDisposable {
  const stop = new AbortController()
  const stopped = sweepUntil(stop.signal)
  async function sweepUntil(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // The first one tells at once of a keychain that cannot be used.
      await database.store.sweep().catch((error: unknown) => log.error(toRelayError(error).message, error))
      await sleep(SWEEP_EVERY_MS, { signal }).catch(() => {})
    }
  }
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await stopped
    },
  }
}
