import type { Cancellable } from '../base/abort.js'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import {
  DEFAULT_KEEP,
  DEFAULT_KEEP_MAX,
  DEFAULT_MAX_BODY,
  DEFAULT_TOKEN_TTL,
  type HandOnSettings,
  NO_HAND_ON,
  type Settings,
} from '../base/settings.js'
import type { Fixture } from '../journal/fixture.js'
import { deliveryId } from '../replay/prepare.js'
import { openSender } from '../replay/send.js'
import { serve, type ServeOptions, type Serving } from '../serve/serve.js'
import type { WebhookRequest } from '../webhook/intake.js'
import { type DeliveryFilter, type TestDelivery, waitForDeliveries, type WaitOptions } from './deliveries.js'
import { signIn } from './sign-in.js'
import { type SignOptions, signed } from './signed-request.js'
import { type TestSandbox, viewOf } from './start-sandbox.js'
import { TEST_SECRET } from './test-secret.js'
import { createWatch, type Watch } from './watch.js'

export interface TestRelayOptions
  extends Omit<ServeOptions, 'sandboxPort' | 'handsOn'>, Partial<HandOnSettings> {
  /** The webhook secret. Default: {@link TEST_SECRET}. */
  readonly secret?: string
  /** Overrides of the settings below, e.g. `maxBody`. */
  readonly settings?: Partial<Settings>
}

export type DeliverOptions = Omit<SignOptions, 'secret' | 'tamper'> & Pick<WaitOptions, 'timeout' | 'signal'>

/** A whole relay for a test: in memory, on free ports of 127.0.0.1, with a sandbox for its code host. */
export interface TestRelay extends AsyncDisposable, Pick<Serving, 'url' | 'relay' | 'settings'> {
  /** The webhook secret. */
  readonly secret: string
  readonly sandbox: TestSandbox
  /**
   * Delivers a fixture, signed, as the code host would, and waits until it was tried at every target it is meant for.
   * @throws RelayError `target_failed` when the relay refuses it, and as {@link TestRelay.deliveries}.
   */
  deliver(fixture: Fixture, options?: DeliverOptions): Promise<TestDelivery>
  /**
   * Waits until so many deliveries have come, now or before, and each was tried at every target it is meant for; those
   * of the sandbox too. All that pass are given, oldest first.
   * @throws RelayError `timed_out` naming what did arrive, `usage` for an event that is none, `cancelled` when the relay
   * is stopped meanwhile; the signal's reason.
   */
  deliveries(wanted?: DeliveryFilter, options?: WaitOptions): Promise<TestDelivery[]>
  /** Hands deliveries on to these from now on. @throws RelayError `settings`, and nothing is changed. */
  replaceRoutes(handOn: Partial<HandOnSettings>): void
  /**
   * Signs a user in at the sandbox, as a browser would, and gives the access token: the bearer for `/api/comment`,
   * `/api/merge` and `/api/react`. At the sandbox all users are `octo`.
   * @throws RelayError `usage` for a user id that the relay refuses, `unauthenticated` saying why signing in failed.
   */
  signIn(userId?: string): Promise<string>
}

/**
 * Starts a {@link TestRelay}; end it with `await using`, or its `[Symbol.asyncDispose]()`. `forward`, `exec` and `ignore` are
 * routes as `relay serve` takes them: `issues.*=http://localhost:3000/webhook`.
 * @throws RelayError `settings` for a route that is none.
 */
export async function startRelay(options: TestRelayOptions = {}): Promise<TestRelay> {
  const { secret = TEST_SECRET, settings, forward = [], exec = [], ignore = [], ...rest } = options
  const watch = createWatch()
  const serving = await serve(
    { ...testSettings(secret), handOn: { forward, exec, ignore }, ...settings },
    { ...rest, ...both(watch, rest), sandboxPort: 0 },
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
    async deliver(fixture, { timeout, signal, ...how } = {}) {
      const request = signed(fixture, { ...how, secret })
      await send(`${url}/webhook`, request, { signal })
      const wait = { signal, ...(timeout !== undefined && { timeout }) }
      const [delivery] = await deliveries({ deliveryId: deliveryId(request) }, wait)
      if (!delivery) throw new Error('unreachable: one was waited for')
      return delivery
    },
    replaceRoutes: (handOn) => serving.replaceRoutes({ ...NO_HAND_ON, ...handOn }),
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
  const said = error ?? `${status} ${Buffer.from(body).toString()}`
  throw new RelayError('target_failed', `The relay did not take the delivery: ${said}`)
}

/** Both are told: those who wait here, and whoever else wanted to be. */
function both(watch: Watch, { onDelivery, onAttempt }: ServeOptions): ServeOptions {
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

function testSettings(secret: string): Settings {
  return {
    profile: 'test',
    folder: '',
    provider: 'sandbox',
    providerUrl: 'http://127.0.0.1',
    webhookSecrets: { current: new Secret(secret) },
    host: '127.0.0.1',
    port: 0,
    allowedHosts: [],
    store: 'memory',
    maxBody: DEFAULT_MAX_BODY,
    tokenTtl: DEFAULT_TOKEN_TTL,
    handOn: NO_HAND_ON,
    concurrency: 1,
    onDuplicate: 'if-failed',
    keep: DEFAULT_KEEP,
    keepMax: DEFAULT_KEEP_MAX,
  }
}
