import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { DEFAULTS, type RouteSettings, NO_ROUTES, type Settings } from '../base/settings.js'
import type { Fixture } from '../fixtures/fixture.js'
import { deliveryId } from '../replay/prepare.js'
import { openSender } from '../replay/send.js'
import type { SandboxSettings } from '../serve/embedded-sandbox.js'
import { serve, type ServeOptions, type Serving } from '../serve/serve.js'
import type { WebhookRequest } from '../webhook/intake.js'
import { type DeliveryFilter, type TestDelivery, waitForDeliveries, type WaitOptions } from './deliveries.js'
import { signIn } from './sign-in.js'
import { type SignOptions, signed, TEST_SECRET } from './signed-request.js'
import { type TestSandbox, viewOf } from './start-sandbox.js'
import { createWatch, type Watch } from './watch.js'

export interface TestRelayOptions
  extends Omit<ServeOptions, 'forwarding' | 'onTaken'>, Partial<RouteSettings> {
  /** Webhook secret. Default: {@link TEST_SECRET}. */
  readonly secret?: string
  /** Settings that replace the defaults below, e.g. `maxBody`. */
  readonly settings?: Partial<Settings>
}

export type DeliverOptions = Omit<SignOptions, 'secret' | 'tamper'> & Pick<WaitOptions, 'timeout' | 'signal'>

/** Complete relay for a test: in memory, on free ports of 127.0.0.1, with a sandbox as its code host. */
export interface TestRelay extends AsyncDisposable, Pick<Serving, 'url' | 'relay' | 'settings'> {
  /** Webhook secret. */
  readonly secret: string
  readonly sandbox: TestSandbox
  /**
   * Sends a signed fixture to the relay like the code host, and waits until it was attempted at all its targets.
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
  /** Replaces the routes from now on. @throws RelayError `settings` for an invalid route, with no change. */
  replaceRoutes(routes: Partial<RouteSettings>): void
  /**
   * Signs a user in at the sandbox like a browser and returns the access token, the bearer for `/api/comment`, `/api/merge`
   * and `/api/react`. Every user has the sandbox account `octo`.
   * @throws RelayError `usage` for an invalid user id, `unauthenticated` with the reason when the sign-in fails.
   */
  signIn(userId?: string): Promise<string>
}

/**
 * Starts a {@link TestRelay}. Stop it with `await using` or its `[Symbol.asyncDispose]()`. `forward`, `exec` and `ignore` have
 * the syntax of `relay serve`: `issues.*=http://localhost:3000/webhook`.
 * @throws RelayError `settings` for an invalid route.
 */
export async function startRelay(options: TestRelayOptions = {}): Promise<TestRelay> {
  const { secret = TEST_SECRET, settings, forward = [], exec = [], ignore = [], ...rest } = options
  const watch = createWatch()
  const serving = await serve(
    { ...testSettings(secret), routes: { forward, exec, ignore }, ...settings },
    { ...rest, ...notifyBoth(watch, rest) },
  )
  return testRelay(serving, watch)
}

function testRelay(serving: Serving, watch: Watch): TestRelay {
  const { url, relay, settings, sandbox } = serving
  const { oauthClient: client } = settings
  if (!sandbox || !client) throw new Error('unreachable: a sandbox port was given')
  const secret = settings.webhookSecrets.current.reveal()
  const deliveries = (wanted: DeliveryFilter = {}, wait: WaitOptions = {}) =>
    waitForDeliveries(relay.journal, watch, wanted, wait)
  return {
    url,
    relay,
    settings,
    secret,
    sandbox: viewOf(sandbox, { id: client.id, secret: client.secret.reveal() }, {}),
    deliveries,
    async deliver(fixture, { timeout, signal, ...signing } = {}) {
      const request = signed(fixture, { ...signing, secret })
      await send(`${url}/webhook`, request, { signal })
      const wait = { signal, ...(timeout !== undefined && { timeout }) }
      const [delivery] = await deliveries({ deliveryId: deliveryId(request) }, wait)
      if (!delivery) throw new Error('unreachable: the wait returns at least one')
      return delivery
    },
    replaceRoutes: (forward) => serving.replaceRoutes({ ...NO_ROUTES, ...forward }),
    signIn: (userId = 'tester') => signIn(serving, userId),
    [Symbol.asyncDispose]() {
      watch.end()
      return serving[Symbol.asyncDispose]()
    },
  }
}

async function send(url: string, request: WebhookRequest, { signal }: Cancellable): Promise<void> {
  await using sender = openSender(url)
  const { status, error, body } = await sender.send(request, { signal })
  if (status === 200) return
  const reason = error ?? `${status} ${Buffer.from(body).toString()}`
  throw new RelayError('target_failed', `The relay refused the delivery: ${reason}`)
}

/** Callbacks that notify the watch and the caller's own callbacks. */
function notifyBoth(watch: Watch, { onDelivery, onAttempt }: ServeOptions): ServeOptions {
  return {
    onDelivery(delivery, receipt) {
      onDelivery?.(delivery, receipt)
      watch.onDelivery(delivery, receipt)
    },
    onAttempt(event) {
      onAttempt?.(event)
      watch.onAttempt(event)
    },
  }
}

function testSettings(secret: string): SandboxSettings {
  return {
    ...DEFAULTS,
    profile: 'test',
    folder: '',
    sandboxPort: 0,
    webhookSecrets: { current: new Secret(secret) },
    port: 0,
    allowedHosts: [],
    store: 'memory',
    routes: NO_ROUTES,
  }
}
