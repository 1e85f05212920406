import type { CommandPlace } from '../base/command-line.js'
import { RelayError, toRelayError } from '../base/errors.js'
import { Disposal } from '../base/lifetime.js'
import { type Log, silentLog } from '../base/log.js'
import { TIME_LIMITS, type Seams } from '../base/seams.js'
import type { ReadSettings } from '../base/settings.js'
import { type Clock, systemClock } from '../base/time.js'
import { type Core, openCore } from '../core.js'
import type { DispatcherOptions } from '../dispatch/dispatcher.js'
import { Events, type EventListener } from '../events/events.js'
import { listen } from '../http/listen.js'
import { errorResponse } from '../http/router.js'
import { createInstanceRecord } from '../instance/protocol.js'
import { takeProfile } from '../instance/running.js'
import { isObject } from '../json/parse.js'
import type { SendOnce } from '../net/client.js'
import { lastSandboxUrl, SANDBOX_CLIENT, saveSandboxUrl } from '../sandbox/client.js'
import type { Sandbox } from '../sandbox/sandbox.js'
import type { ReadyCheck } from '../server/parts.js'
import { type Database, openDatabase } from '../store/open.js'
import type { HookPlan } from './hooks.js'
import { Instance, type Reread } from './instance.js'
import { Readiness } from './readiness.js'
import type { StatusParts } from './status.js'
import { checkTunnel } from './tunnel.js'

/** Settings of a relay that starts a sandbox, and uses it as its code host. */
export interface SandboxedSettings extends Omit<ReadSettings, 'provider' | 'providerUrl'> {
  /** `port`: of the sandbox; 0: any free one. */
  readonly sandbox: { readonly port: number }
}

/** What is known of a relay's settings before it has its profile, and how the rest is found. */
export interface SettingsReader extends Pick<ReadSettings, 'folder' | 'store' | 'host' | 'port' | 'maxBody'> {
  /** Called once the profile is taken and its data is open. It may make what is missing. */
  readonly complete: (database: Database) => Promise<ReadSettings | SandboxedSettings>
  /** Reads the settings again. @throws RelayError `settings` for those that cannot be used */
  readonly reread: (database: Database, current: Pick<ReadSettings, 'provider'>) => Promise<Reread>
}

export interface StartOptions {
  readonly log?: Log | undefined
  readonly clock?: Clock | undefined
  /** What a test replaces. Default: nothing. */
  readonly seams?: Seams | undefined
  /** The environment of commands that receive deliveries; relay's own secrets are removed. Default: empty. */
  readonly env?: DispatcherOptions['env'] | undefined
  /** Called with all that happens. Must not throw. */
  readonly onEvent?: EventListener | undefined
  /**
   * Called once the profile is taken, before any request is answered. What it returns is disposed of before anything stops. May throw: the
   * start then fails.
   */
  readonly onTaken?: ((instance: Instance) => Disposable | undefined) | undefined
  /** What the commands that it names have to be written for. Default: the profile, wherever no other runs. */
  readonly place?: CommandPlace | undefined
  /** What the command line alone knows, for the status of the instance. */
  readonly shown?: Pick<StatusParts, 'folderHost' | 'hasMadeSecret'> | undefined
  /** Hooks to have while it runs, and to catch up from. Default: none. */
  readonly hooks?: HookPlan | undefined
  /** The profile's data, where the caller has it open; it then also closes it. */
  readonly database?: Database | undefined
  /** How the code host is called for the actions. Default: over the network. */
  readonly sendOnce?: SendOnce | undefined
}

/** A running instance. Disposing of it lets requests in flight finish, then releases port and profile. */
export interface Started extends AsyncDisposable {
  readonly instance: Instance
}

/**
 * Starts a relay: listens, takes the profile, opens its data, forwards.
 * @throws RelayError `unavailable` when the port is in use or the profile is being served, `storage` when its data cannot be opened, `settings`
 * for a provider address that is neither https nor loopback, or where other relays of the profile have other routes; what `complete` throws
 */
export async function start(given: Given, options: StartOptions = {}): Promise<Started> {
  await using closing = new Disposal()
  const instance = await startIn(closing, given, options)
  const owner = closing.move()
  return { instance, [Symbol.asyncDispose]: () => owner[Symbol.asyncDispose]() }
}

type Given = ReadSettings | SandboxedSettings | SettingsReader

/** The same; what has to be closed, also where it fails, is in `closing`. */
async function startIn(closing: Disposal, given: Given, options: StartOptions): Promise<Instance> {
  const { log = silentLog, seams, onTaken } = options
  const { host, port, maxBody } = given
  const { stop: grace, ...limits } = { ...TIME_LIMITS, ...seams?.limits }
  const readiness = new Readiness(log)
  // Listen first: another relay must find the port in use, and port 0 is known only then. Nothing is answered yet.
  const listener = await listen(readiness.fetch, { host, port, log, maxBody, limits: { ...limits, grace } })
  const { url } = listener
  const closeListener = async (): Promise<void> => {
    // What still waits, since the start failed, is answered now.
    readiness.open(() => errorResponse(new RelayError('unavailable', 'relay is stopping'), silentLog))
    await listener.close()
  }
  const place = { url, ready: readiness.check, log }
  const { instance, settled } = await open(closing, given, options, place).catch(async (error: unknown) => {
    await closeListener()
    throw error
  })
  const { core, sandbox } = instance
  // In this order: the profile is ours until the last request is answered.
  closing.defer(() => instance.end())
  closing.defer(closeListener)
  // While it still answers what they send.
  closing.defer(() => instance.stopReceiving())
  if (sandbox) await registerSandbox(core, sandbox.url)
  const taken = onTaken?.(instance)
  closing.defer(async () => taken?.[Symbol.dispose]())
  core.events.emit({ type: 'listening', url, sandbox: sandbox?.url ?? null })
  readiness.open(instance.app.fetch)
  readiness.start(core.journal)
  await instance.run()
  closing.defer(() => readiness.stop())
  settled()
  return instance
}

/**
 * Takes the profile, opens its data and makes the instance. Only then it is known what relay made for the profile before. `settled`: to be
 * called once the start has succeeded; until then, what it made is removed again at the end.
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
  const taken = await takeProfile(given)
  closing.defer(async () => taken?.[Symbol.dispose]())
  let isNew = true
  closing.defer(async () => {
    if (isNew) await taken?.discard()
  })
  const onSlow = (text: string): void => log.info(text)
  const database =
    options.database ??
    closing.use(await openDatabase({ kind, folder, clock, fault: seams.storage, onSlow, migrate: true }))
  // Another process may have written into it meanwhile.
  closing.defer(async () => void (isNew &&= !database.isShared()))
  const complete = 'complete' in given ? await given.complete(database) : given
  const { settings, sandbox } = await withSandbox(complete, url, closing, log)
  const reread = 'complete' in given ? () => given.reread(database, settings) : undefined
  checkTunnel(settings)
  const limits = { ...TIME_LIMITS, ...seams.limits }
  const events = new Events(onEvent)
  const { place = { profile: settings.profile, sandbox: sandbox !== undefined, isNamed: false } } = options
  const shared = { database, limits, clock, log, events, place }
  const core = await openCore(settings, { ...shared, forwards: true, sendOnce })
  const record = createInstanceRecord({ pid: process.pid, url, profile: settings.profile })
  const own = { url, record, sandbox, ready, env, hooks, reread, seams, startedAt: Date.now(), shown }
  const instance = new Instance({ core, ...own })
  await instance.join()
  const settled = (): void => {
    database.removeCopies()
    isNew = false
  }
  return { instance, settled }
}

/** Starts the embedded code host, which is loaded only here, where the settings ask for one: it then replaces code host and client. */
async function withSandbox(
  given: ReadSettings | SandboxedSettings,
  url: string,
  closing: Disposal,
  log: Log,
): Promise<{ readonly settings: ReadSettings; readonly sandbox: Sandbox | undefined }> {
  if (!wantsSandbox(given)) return { settings: given, sandbox: undefined }
  const { sandbox: wanted, ...settings } = given
  const { id, secret } = SANDBOX_CLIENT
  const { openSandbox } = await import('../sandbox/sandbox.js')
  const webhook = { url: () => `${url}/webhook`, secret: settings.webhookSecrets.current }
  const client = { id, secret: secret.reveal() }
  const sandbox = closing.use(await openSandbox({ client, webhook, port: wanted.port, log }))
  const host = { provider: 'sandbox', providerUrl: sandbox.url, oauthClient: SANDBOX_CLIENT } as const
  return { settings: { ...settings, ...host }, sandbox }
}

/** A program without types may name it and mean none. */
function wantsSandbox(settings: ReadSettings | SandboxedSettings): settings is SandboxedSettings {
  return 'sandbox' in settings && isObject(settings.sandbox)
}

/**
 * Revokes the tokens of earlier sandboxes, which a new one does not know, and stores its address for other commands. A full disk is a
 * warning. @throws RelayError `storage` for a keychain
 */
async function registerSandbox({ tokens, database, settings, log }: Core, url: string): Promise<void> {
  const { secrets } = database
  try {
    const gone = new Set([url, await lastSandboxUrl(secrets)])
    for (const { userId, origin } of await tokens.owners()) if (gone.has(origin)) await tokens.revoke(userId)
    await saveSandboxUrl(secrets, url)
  } catch (error) {
    // A keychain that cannot be used has no other store to fall back to.
    if (settings.store === 'keychain') throw error
    log.warn(`commands cannot find the sandbox: ${toRelayError(error).message}`)
  }
}
