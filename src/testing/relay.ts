import { pathOf } from '../base/source-names.js'
import { isolateCallbacks } from '../base/callbacks.js'
import { onAbort } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { checkNames, type NamesOf } from '../base/names.js'
import { Secret } from '../base/secret.js'
import { DEFAULTS, NO_ROUTES, type RouteSettings, type Settings } from '../base/settings.js'
import { readResponseText, sendOnce } from '../net/client.js'
import { type Fixture, fromFixture } from '../replay/fixture.js'
import { entryOf } from '../replay/entry.js'
import { deliveryId } from '../replay/prepare.js'
import { openSender } from '../replay/send.js'
import type { ServeOptions, Serving } from '../serve/serve.js'
import { listenerOf, servingOf } from '../serve/serving.js'
import type { Instance } from '../serve/instance.js'
import { checkSettings } from '../senders/check-settings.js'
import { start as startInstance, type Started } from '../serve/start.js'
import { checkedScheme, kitSecrets, type SignOptions, signed, TEST_SECRET } from './request.js'
import { consent, type TestSandbox, testSandboxOf } from './sandbox.js'
import {
  type DeliveryFilter,
  type NothingMoreOptions,
  type TestDelivery,
  Waits,
  type WaitOptions,
} from './waits.js'
import { held, Watch } from './watch.js'

export interface TestRelayOptions extends ServeOptions, Partial<RouteSettings> {
  /** Webhook secret. Default: {@link TEST_SECRET}. */
  readonly secret?: string
  /**
   * Further sources by their names: a scheme, as `{ billing: 'stripe' }`, or one with a secret of its own. For a sender with a
   * key pair, the kit's own key signs, whose public half is `publicKeyOf` the scheme.
   */
  readonly sources?: Readonly<Record<string, string | TestSource>>
  /**
   * Delays before another attempt at a target that answers 5xx, in milliseconds; their number is that of the retries. The
   * first is also that for a target that is unreachable. Default: those of `relay serve`, a minute in all.
   */
  readonly retries?: readonly number[]
  /** Stops the relay when it aborts, for example `t.signal` of node:test. */
  readonly signal?: AbortSignal | undefined
  /** Settings that replace the defaults below, for example `maxBody`. */
  readonly settings?: Partial<Settings>
}

/** A source of a {@link TestRelay}. */
export interface TestSource {
  /** As in `relay serve --source`: `stripe`, or `hmac header=X-Signature prefix=sha256=`. */
  readonly scheme: string
  /** Default: that of the relay. */
  readonly secret?: string
}

export type DeliverOptions = Omit<SignOptions, 'secret' | 'tamper'> &
  Pick<WaitOptions, 'timeout' | 'signal' | 'until'>

/** Complete relay for a test: in memory, on free ports of 127.0.0.1, with a sandbox as its code host. */
export interface TestRelay extends AsyncDisposable, Pick<Serving, 'url' | 'relay' | 'settings'> {
  /** Webhook secret. */
  readonly secret: string
  readonly sandbox: TestSandbox
  /**
   * Sends a signed fixture to the relay like its sender, with the source's secret, and waits until it was attempted at all
   * its targets, or as `until` says.
   * @throws RelayError `target_failed` when the relay refuses it; otherwise as {@link TestRelay.deliveries}.
   */
  deliver(fixture: Fixture, options?: DeliverOptions): Promise<TestDelivery>
  /**
   * Waits until enough deliveries have arrived since the start, including the sandbox's, and each was attempted at all its
   * targets. Returns all that match, oldest first.
   * @throws RelayError `timed_out` with a list of what did arrive, `usage` for an invalid event, `cancelled` when the relay
   * stops meanwhile; the signal's reason.
   */
  deliveries(wanted?: DeliveryFilter, options?: WaitOptions): Promise<TestDelivery[]>
  /**
   * Resolves if nothing arrives that no call of `deliver` or `deliveries` has returned yet, after the sandbox has sent all
   * its webhooks.
   * @throws RelayError `target_failed` with a list of what did arrive; otherwise as {@link TestRelay.deliveries}
   */
  nothingMore(wanted?: DeliveryFilter, options?: NothingMoreOptions): Promise<void>
  /** Attempts waiting deliveries now, instead of after their delay. */
  retryNow(): void
  /** Replaces the routes from now on. @throws RelayError `settings` for an invalid route, with no change. */
  replaceRoutes(routes: Partial<RouteSettings>): void
  /**
   * Signs a user in at the sandbox like a browser and returns the access token, the bearer for `/api/comment`, `/api/merge`
   * and `/api/react`. Every user has the sandbox account `octo`.
   * @throws RelayError `usage` for an invalid user id, `unauthenticated` with the reason when the sign-in fails.
   */
  signIn(userId?: string): Promise<string>
  /** Stops the relay and its sandbox, for `afterEach`. The same as `await using`. Called again, it does nothing. */
  stop(): Promise<void>
}

const ROUTES: NamesOf<RouteSettings> = {
  forward: true,
  exec: true,
  ignore: true,
  routes: true,
  timeout: true,
  reply: true,
}
const START_OPTIONS: NamesOf<TestRelayOptions> = {
  secret: true,
  sources: true,
  settings: true,
  retries: true,
  signal: true,
  ...ROUTES,
  log: true,
  clock: true,
  seams: true,
  env: true,
  onListening: true,
  onDelivery: true,
  onAttempt: true,
  onTarget: true,
}
const FILTER: NamesOf<DeliveryFilter> = { event: true, repo: true, deliveryId: true }
const WAIT_OPTIONS: NamesOf<WaitOptions> = { count: true, timeout: true, until: true, signal: true }
const DELIVER_OPTIONS: NamesOf<DeliverOptions> = {
  set: true,
  keepId: true,
  timeout: true,
  until: true,
  signal: true,
}
const NOTHING_OPTIONS: NamesOf<NothingMoreOptions> = { within: true, signal: true }
const SOURCE: NamesOf<TestSource> = { scheme: true, secret: true }

/**
 * Starts a {@link TestRelay}. It does not keep the process alive: a test that fails before it stops the relay ends all the
 * same. `forward`, `exec` and `ignore` have the syntax of `relay serve`: `issues.*=http://localhost:3000/webhook`.
 * @throws RelayError `settings` for an invalid route or setting, `usage` for an unknown option; the signal's reason
 */
export async function startRelay(options: TestRelayOptions = {}): Promise<TestRelay> {
  const check = { of: 'startRelay has no option', kind: 'usage' } as const
  checkNames(options, START_OPTIONS, {
    ...check,
    ownAllowed: Object.getPrototypeOf(options) !== Object.prototype,
  })
  const { signal } = options
  signal?.throwIfAborted()
  const relay = await held(() => start(options))
  if (signal) onAbort(signal, () => void relay.stop().catch(() => {}))
  signal?.throwIfAborted()
  return relay
}

async function start(options: TestRelayOptions): Promise<TestRelay> {
  const {
    secret = TEST_SECRET,
    sources: givenSources = {},
    settings: given = {},
    retries,
    forward = [],
    exec = [],
    ignore = [],
    routes = [],
    timeout,
    reply,
    log,
    clock,
    seams,
    env,
    ...callbacks
  } = isolateCallbacks(options)
  checkSettings(given)
  const program = listenerOf(callbacks, log)
  const sources = Object.entries(givenSources).map(([name, source]) => sourceOf(name, source, secret))
  const watch = new Watch()
  const limits = retries && { retries: [...retries], ...(retries[0] !== undefined && { probe: retries[0] }) }
  const started = await startInstance(
    {
      ...DEFAULTS,
      profile: 'test',
      folder: '',
      webhookSecrets: { current: new Secret(secret) },
      sources: sources.map(({ name, scheme, secret }) => ({
        name,
        scheme,
        secrets: kitSecrets(scheme, secret),
      })),
      port: 0,
      allowedHosts: [],
      store: 'memory',
      routes: { forward, exec, ignore, routes, timeout, reply },
      ...given,
      sandbox: { port: 0 },
    },
    {
      log,
      clock,
      seams: { background: true, ...seams, limits: { ...limits, ...seams?.limits } },
      env,
      onEvent(event) {
        program(event)
        watch.onEvent(event)
      },
    },
  )
  return testRelay(started, watch, new Map(sources.map(({ name, secret }) => [name, secret])))
}

/** Reads one of `sources`. @throws RelayError `usage` for an unknown name, `settings` for an unknown scheme */
function sourceOf(
  name: string,
  source: string | TestSource,
  common: string,
): Required<TestSource> & { readonly name: string } {
  if (typeof source === 'string') return { name, scheme: checkedScheme(source), secret: common }
  checkNames(source, SOURCE, { of: `the source ${name} has no option`, kind: 'usage' })
  return { name, scheme: checkedScheme(source.scheme), secret: source.secret ?? common }
}

/** @param secrets of the sources, by their names */
function testRelay(started: Started, watch: Watch, secrets: ReadonlyMap<string, string>): TestRelay {
  const { instance } = started
  const { url, relay, settings } = servingOf(started)
  const { core, sandbox } = instance
  const { oauthClient: client } = settings
  if (!sandbox || !client) throw new Error('unreachable: a sandbox was asked for')
  const secret = settings.webhookSecrets.current.reveal()
  const testSandbox = testSandboxOf(sandbox, { id: client.id, secret: client.secret.reveal() })
  const waits = new Waits(core.journal, watch)
  const wait = (wanted: DeliveryFilter, options: WaitOptions) => held(() => waits.deliveries(wanted, options))
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => {
    watch.end()
    return (stopped ??= held(async () => started[Symbol.asyncDispose]()))
  }
  return {
    url,
    relay,
    settings,
    secret,
    sandbox: testSandbox,
    async deliveries(wanted = {}, options = {}) {
      checkNames(wanted, FILTER, { of: 'a filter of deliveries has no', kind: 'usage' })
      checkNames(options, WAIT_OPTIONS, { of: 'deliveries has no option', kind: 'usage' })
      return wait(wanted, options)
    },
    async deliver(fixture, options = {}) {
      checkNames(options, DELIVER_OPTIONS, { of: 'deliver has no option', kind: 'usage' })
      const { timeout, signal, until, ...signing } = options
      const ofSource = secrets.get(fromFixture(fixture).provider) ?? secret
      const deliveryId = await send(instance, fixture, { ...signing, secret: ofSource }, signal)
      const limits = { signal, ...(timeout !== undefined && { timeout }), ...(until && { until }) }
      const [delivery] = await wait({ deliveryId }, limits)
      if (!delivery) throw new Error('unreachable: the wait returns at least one')
      return delivery
    },
    async nothingMore(wanted = {}, options = {}) {
      checkNames(wanted, FILTER, { of: 'a filter of deliveries has no', kind: 'usage' })
      checkNames(options, NOTHING_OPTIONS, { of: 'nothingMore has no option', kind: 'usage' })
      await held(async () => {
        await testSandbox.idle()
        await waits.nothing(wanted, options)
      })
    },
    retryNow: () => instance.retryNow(),
    replaceRoutes(routes) {
      checkNames(routes, ROUTES, { of: 'replaceRoutes has no', kind: 'usage' })
      instance.replaceRoutes({ ...NO_ROUTES, ...routes })
    },
    signIn: (userId = 'tester') => held(() => signIn(instance, userId)),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/**
 * Sends a signed fixture to its source's address, and returns the delivery id with which the relay stored it.
 * @throws RelayError as {@link TestRelay.deliver}
 */
async function send(
  { url, core }: Instance,
  fixture: Fixture,
  signing: SignOptions,
  signal: AbortSignal | undefined,
): Promise<string> {
  const recorded = fromFixture(fixture)
  const { provider: source } = recorded
  const at = `${url}${core.sources.has(source) ? pathOf(source) : '/webhook'}`
  const request = signed(fixture, signing, at)
  const before = await core.journal.newest()
  await using sender = openSender(at)
  const { status, error, body } = await sender.send(request, { signal })
  const reason = error ?? `${status} ${Buffer.from(body).toString()}`
  if (status !== 200) throw new RelayError('target_failed', `The relay refused the delivery: ${reason}`)
  const sent = { id: deliveryId(request, recorded), before, source, size: request.body.byteLength }
  const entry = await entryOf(core.journal, sent)
  return entry?.delivery ?? sent.id
}

/** Signs a user in with every step of a browser. @throws RelayError as {@link TestRelay.signIn} */
async function signIn({ url, core }: Instance, userId: string): Promise<string> {
  const get = (address: string, headers = {}) => sendOnce(address, { method: 'GET', headers })
  const started = await get(`${url}/auth/sandbox?userId=${encodeURIComponent(userId)}`)
  const text = await readResponseText(started)
  const page = started.header('location')
  if (page === undefined) throw new RelayError('usage', `Cannot sign in: ${text}`)
  const [cookie = ''] = (started.header('set-cookie') ?? '').split(';')
  const result = await get(await consent(page), { cookie })
  result.discard()
  const reason = new URL(result.header('location') ?? url).searchParams.get('reason')
  const owner = await core.tokens.get(userId)
  if (reason !== null || !owner)
    throw new RelayError('unauthenticated', `Cannot sign in: ${reason ?? 'there is no token'}`)
  return owner.accessToken
}
