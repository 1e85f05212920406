import type { CommandPlace } from '../base/command-line.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { Disposal } from '../base/lifetime.js'
import { type Log, silentLog } from '../base/log.js'
import { hostSource } from '../base/source-names.js'
import { TIME_LIMITS, type Seams } from '../base/seams.js'
import type { ReadSettings } from '../base/settings.js'
import { type Clock, systemClock } from '../base/time.js'
import { type Core, openCore } from '../core.js'
import type { DispatcherOptions } from '../dispatch/lane.js'
import { Events, type EventListener } from '../events/events.js'
import { listen } from '../http/listen.js'
import { errorResponse } from '../http/router.js'
import { createInstanceRecord } from '../instance/protocol.js'
import { acquireProfile } from '../instance/running.js'
import { isObject } from '../json/parse.js'
import type { SendOnce } from '../net/client.js'
import { lastSandboxUrl, SANDBOX_CLIENT, saveSandboxUrl } from '../sandbox/client.js'
import type { Sandbox, SandboxOptions } from '../sandbox/sandbox.js'
import type { ReadyCheck } from '../server/parts.js'
import { type Database, openDatabase } from '../store/open.js'
import type { HookPlan } from './hooks.js'
import { isHub } from './hub-profile.js'
import type { Mount } from './mount.js'
import { Instance, type Reread } from './instance.js'
import { Readiness } from './readiness.js'
import type { CommandLineFacts } from './status.js'
import { checkTunnel } from './tunnel.js'

/** Settings of a relay that starts a sandbox as its code host. */
export interface SandboxedSettings extends Omit<ReadSettings, 'provider' | 'providerUrl'> {
  /** `port` of the sandbox; 0 for any free one. */
  readonly sandbox: { readonly port: number }
}

/** Settings that are known before relay has its profile, and functions that read the rest. */
export interface SettingsReader extends Pick<ReadSettings, 'folder' | 'store' | 'host' | 'port' | 'maxBody'> {
  /** Called once the profile is taken and its data is open. It may generate missing settings. */
  readonly complete: (database: Database) => Promise<ReadSettings | SandboxedSettings>
  /** Reads the settings again. @throws RelayError `settings` if they cannot be used */
  readonly reread: (database: Database, current: ReadSettings) => Promise<Reread>
}

export interface StartOptions {
  readonly log?: Log | undefined
  readonly clock?: Clock | undefined
  /** Replacements for tests. Default: none. */
  readonly seams?: Seams | undefined
  /** Environment of commands that receive deliveries. relay's own secrets are removed. Default: empty. */
  readonly env?: DispatcherOptions['env'] | undefined
  /** Called with every event. Must not throw. */
  readonly onEvent?: EventListener | undefined
  /**
   * Called once the profile is taken, before any request is answered. The result is disposed of before anything stops.
   * If it throws, the start fails.
   */
  readonly onTaken?: ((instance: Instance) => Disposable | undefined) | undefined
  /** True for an embedding program, whose errors name the folder. Default: false. */
  readonly isEmbedded?: boolean | undefined
  /** Takes the requests of a program that listens itself. Default: relay listens. */
  readonly mount?: Mount | undefined
  /** Profile and settings for the command lines in messages. Default: the profile, as if no other one ran. */
  readonly place?: CommandPlace | undefined
  /** Parts of the instance's status that only the command line knows. */
  readonly shown?: CommandLineFacts | undefined
  /** Hooks to keep while it runs, and to catch up from. Default: none. */
  readonly hooks?: HookPlan | undefined
  /** The profile's database, if the caller has opened it. The caller then closes it. */
  readonly database?: Database | undefined
  /** Sends the requests of actions to the code host. Default: over the network. */
  readonly sendOnce?: SendOnce | undefined
}

/** A running instance. Disposing of it lets requests in flight finish, then releases port and profile. */
export interface Started extends AsyncDisposable {
  readonly instance: Instance
}

/**
 * Starts a relay: listens, takes the profile, opens its data, forwards.
 * @throws RelayError `unavailable` if the port is in use or the profile is being served, `storage` if its data cannot
 * be opened, `settings` for a provider address that is neither https nor loopback, or if the routes of another relay of
 * the profile differ; errors of `complete`
 */
export async function start(given: Given, options: StartOptions = {}): Promise<Started> {
  await using closing = new Disposal()
  const instance = await startIn(closing, given, options)
  const owner = closing.move()
  return { instance, [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose]() }
}

type Given = ReadSettings | SandboxedSettings | SettingsReader

/** Starts a relay, and adds to `closing` everything that must be closed, even if the start fails. */
async function startIn(closing: Disposal, given: Given, options: StartOptions): Promise<Instance> {
  const { log = silentLog, seams, onTaken } = options
  const { host, port, maxBody } = given
  const { stop: grace, ...limits } = { ...TIME_LIMITS, ...seams?.limits }
  const readiness = new Readiness(log)
  // Listens first, so that another relay finds the port in use, and because port 0 gets its number only now. Requests
  // wait.
  const listener =
    options.mount ??
    (await listen(readiness.fetch, {
      host,
      port,
      log,
      maxBody,
      limits: { ...limits, grace },
      background: seams?.background,
    }))
  const { url } = listener
  const closeListener = async (): Promise<void> => {
    // After a failed start, waiting requests are answered now.
    readiness.open(() => errorResponse(new RelayError('unavailable', 'relay is stopping'), silentLog))
    await listener.close()
  }
  const place = { url, ready: readiness.check, log }
  const { instance, settled } = await open(closing, given, options, place).catch(async (error: unknown) => {
    await closeListener()
    throw error
  })
  const { core, sandbox } = instance
  // Disposed of in reverse order, so that the profile is ours until the last request is answered.
  closing.defer(() => instance.end())
  closing.defer(closeListener)
  // Runs before the listener closes, which still answers the requests of tunnels and hooks.
  closing.defer(() => instance.stopReceiving())
  if (sandbox) await registerSandbox(core, sandbox.url)
  const taken = onTaken?.(instance)
  closing.defer(async () => taken?.[Symbol.dispose]())
  core.events.emit({ type: 'listening', url, sandbox: sandbox?.url ?? null })
  readiness.open(instance.app.fetch)
  options.mount?.open(instance)
  readiness.start(core.journal)
  await instance.run()
  closing.defer(() => readiness.stop())
  settled()
  return instance
}

/**
 * Takes the profile, opens its data and makes the instance. Only then are the settings known that relay generated for
 * the profile. `settled` must be called once the start has succeeded; otherwise the files that it made are removed at
 * the end.
 */
async function open(
  closing: Disposal,
  given: Given,
  options: StartOptions,
  { url, ready, log }: { readonly url: string; readonly ready: ReadyCheck; readonly log: Log },
): Promise<{ readonly instance: Instance; readonly settled: () => void }> {
  const { seams = {}, env = {}, hooks, onEvent, sendOnce, shown = {} } = options
  const { clock = seams.clock ?? systemClock } = options
  const { folder, store: kind } = given
  const taken = await acquireProfile(given, options.isEmbedded === true ? 'folder' : 'profile')
  closing.defer(async () => taken?.[Symbol.dispose]())
  let isNew = true
  closing.defer(async () => {
    if (isNew) await taken?.discard()
  })
  const onSlow = (text: string): void => log.info(text)
  const database =
    options.database ??
    closing.use(await openDatabase({ kind, folder, clock, fault: seams.storage, onSlow, migrate: true }))
  // Another process may have written to the data meanwhile.
  closing.defer(async () => void (isNew &&= !database.isShared()))
  if (await isHub(database))
    throw new RelayError(
      'settings',
      'This profile is that of a hub, whose requests nothing has proved. Choose another with --profile',
    )
  const complete = 'complete' in given ? await given.complete(database) : given
  const { settings, sandbox } = await withSandbox(complete, url, closing, {
    log,
    background: seams.background,
  })
  const reread = 'complete' in given ? () => given.reread(database, settings) : undefined
  const own = hostSource(settings.provider)
  const codeHost = { name: own, scheme: own, secrets: settings.webhookSecrets }
  await checkTunnel({ ...settings, codeHost }, database.store)
  const limits = { ...TIME_LIMITS, ...seams.limits }
  const events = new Events(onEvent)
  const { place = { profile: settings.profile, sandbox: sandbox !== undefined, isNamed: false } } = options
  const shared = { database, limits, clock, log, events, place }
  const core = await openCore(settings, { ...shared, forwards: true, sendOnce })
  const record = createInstanceRecord({ pid: process.pid, url, profile: settings.profile })
  const parts = { url, record, sandbox, ready, env, hooks, reread, seams, startedAt: Date.now(), shown }
  const instance = new Instance({ core, ...parts })
  await instance.join()
  const settled = (): void => {
    database.removeCopies()
    isNew = false
  }
  return { instance, settled }
}

/**
 * Starts the embedded sandbox if the settings ask for one. It then replaces their code host and OAuth client. Loaded
 * only here.
 */
async function withSandbox(
  given: ReadSettings | SandboxedSettings,
  url: string,
  closing: Disposal,
  options: Pick<SandboxOptions, 'log' | 'background'>,
): Promise<{ readonly settings: ReadSettings; readonly sandbox: Sandbox | undefined }> {
  if (!wantsSandbox(given)) return { settings: given, sandbox: undefined }
  const { sandbox: wanted, ...settings } = given
  const { id, secret } = SANDBOX_CLIENT
  const { openSandbox } = await import('../sandbox/sandbox.js')
  const webhook = { url: () => `${url}/webhook`, secret: settings.webhookSecrets.current }
  const client = { id, secret: secret.reveal() }
  const sandbox = closing.use(await openSandbox({ client, webhook, port: wanted.port, ...options }))
  const host = { provider: 'sandbox', providerUrl: sandbox.url, oauthClient: SANDBOX_CLIENT } as const
  return { settings: { ...settings, ...host }, sandbox }
}

/** Tests the value, too, since a program without types may set the field to nothing. */
function wantsSandbox(settings: ReadSettings | SandboxedSettings): settings is SandboxedSettings {
  return 'sandbox' in settings && isObject(settings.sandbox)
}

/**
 * Revokes the tokens of earlier sandboxes, which a new one does not know, and stores its address for other commands. A
 * full disk is only a warning.
 * @throws RelayError `storage` for a keychain
 */
async function registerSandbox({ tokens, database, settings, log }: Core, url: string): Promise<void> {
  const { secrets } = database
  try {
    const gone = new Set([url, await lastSandboxUrl(secrets)])
    for (const { userId, origin } of await tokens.owners()) if (gone.has(origin)) await tokens.revoke(userId)
    await saveSandboxUrl(secrets, url)
  } catch (error) {
    // Rethrown for a keychain, since nothing else can store the address.
    if (settings.store === 'keychain') throw error
    log.warn(`commands cannot find the sandbox: ${toRelayError(error).message}`)
  }
}
