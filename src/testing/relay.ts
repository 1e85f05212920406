import { EventEmitter, once, setMaxListeners } from 'node:events'
import { isolateCallbacks } from '../base/callbacks.js'
import { type Cancellable, deadline } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { DEFAULTS, NO_ROUTES, type RouteSettings, type Settings } from '../base/settings.js'
import { formatDuration } from '../base/time.js'
import { labelOf } from '../dispatch/routes.js'
import type { RelayEvent } from '../events/events.js'
import { type Filter, parseMatch } from '../journal/filter.js'
import type { Journal } from '../journal/journal.js'
import { jsonBytes } from '../journal/payload.js'
import type { Attempt, Entry, Summary } from '../journal/types.js'
import { parseJson } from '../json/parse.js'
import { readResponseText, sendOnce } from '../net/client.js'
import { type Fixture, fromFixture } from '../replay/fixture.js'
import { deliveryId } from '../replay/prepare.js'
import { openSender } from '../replay/send.js'
import type { ServeOptions, Serving } from '../serve/serve.js'
import { listenerOf, servingOf } from '../serve/serving.js'
import type { Instance } from '../serve/instance.js'
import { start, type Started } from '../serve/start.js'
import { pathOf } from '../webhook/signature.js'
import { type SignOptions, signed, TEST_SECRET } from './request.js'
import { consent, type TestSandbox, testSandboxOf } from './sandbox.js'

export interface TestRelayOptions extends ServeOptions, Partial<RouteSettings> {
  /** Webhook secret. Default: {@link TEST_SECRET}. */
  readonly secret?: string
  /** Schemes of further sources by their names, as `{ billing: 'stripe' }`. `secret` signs for each. */
  readonly sources?: Readonly<Record<string, string>>
  /** Settings that replace the defaults below, for example `maxBody`. */
  readonly settings?: Partial<Settings>
}

/** Filter for deliveries. Every given field must match. */
export interface DeliveryFilter {
  /** `push`, `issues.opened`, `issues.*`, `*.closed`, `stripe/invoice.*`; one of a list must match. Default: every event. */
  readonly event?: string | readonly string[]
  /** `owner/name`, case ignored. */
  readonly repo?: string
  /** Delivery id of the code host. */
  readonly deliveryId?: string
}

export interface WaitOptions extends Cancellable {
  /** Minimum number of deliveries. Default: 1. With 0, returns those present now. */
  readonly count?: number
  /** Milliseconds. Default: 4000. */
  readonly timeout?: number
}

export type DeliverOptions = Omit<SignOptions, 'secret' | 'tamper'> & Pick<WaitOptions, 'timeout' | 'signal'>

/** A delivery that the relay accepted, and its attempts. */
export interface TestDelivery extends Entry {
  /** Parsed JSON of the delivery. */
  readonly payload: unknown
  /** Every attempt so far, oldest first. */
  readonly attempts: readonly TestAttempt[]
}

export interface TestAttempt {
  /** URL or command, with its match unless that is `*`. */
  readonly target: string
  readonly outcome: Attempt['outcome']
  /** HTTP status or exit code; null when there was none. */
  readonly status: number | null
  /** Start of the target's response or output, at most 4096 bytes. */
  readonly answer: string
  /** Reason of a failure without a status. */
  readonly error: string | null
}

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

/** Shorter than the usual 5 s of test frameworks, so that this error appears and not theirs. */
const TIMEOUT_MS = 4000
/** Number of deliveries listed in the error. */
const MAX_LISTED = 10

/**
 * Starts a {@link TestRelay}. Stop it with `await using` or its `[Symbol.asyncDispose]()`. `forward`, `exec` and `ignore` have
 * the syntax of `relay serve`: `issues.*=http://localhost:3000/webhook`.
 * @throws RelayError `settings` for an invalid route.
 */
export async function startRelay(options: TestRelayOptions = {}): Promise<TestRelay> {
  const {
    secret = TEST_SECRET,
    sources = {},
    settings: given,
    forward = [],
    exec = [],
    ignore = [],
    log,
    clock,
    seams,
    env,
    ...callbacks
  } = isolateCallbacks(options)
  const program = listenerOf(callbacks, log)
  const secrets = { current: new Secret(secret) }
  const watch = new Watch()
  const started = await start(
    {
      ...DEFAULTS,
      profile: 'test',
      folder: '',
      webhookSecrets: secrets,
      sources: Object.entries(sources).map(([name, scheme]) => ({ name, scheme, secrets })),
      port: 0,
      allowedHosts: [],
      store: 'memory',
      routes: { forward, exec, ignore },
      ...given,
      sandbox: { port: 0 },
    },
    {
      log,
      clock,
      seams,
      env,
      onEvent(event) {
        program(event)
        watch.onEvent(event)
      },
    },
  )
  return testRelay(started, watch)
}

function testRelay(started: Started, watch: Watch): TestRelay {
  const { instance } = started
  const { url, relay, settings } = servingOf(started)
  const { core, sandbox } = instance
  const { oauthClient: client } = settings
  if (!sandbox || !client) throw new Error('unreachable: a sandbox was asked for')
  const secret = settings.webhookSecrets.current.reveal()
  const deliveries = (wanted: DeliveryFilter = {}, wait: WaitOptions = {}) =>
    waitForDeliveries(core.journal, watch, wanted, wait)
  return {
    url,
    relay,
    settings,
    secret,
    sandbox: testSandboxOf(sandbox, { id: client.id, secret: client.secret.reveal() }),
    deliveries,
    async deliver(fixture, { timeout, signal, ...signing } = {}) {
      const request = signed(fixture, { ...signing, secret })
      const recorded = fromFixture(fixture)
      await using sender = openSender(
        `${url}${core.sources.has(recorded.provider) ? pathOf(recorded.provider) : '/webhook'}`,
      )
      const { status, error, body } = await sender.send(request, { signal })
      const reason = error ?? `${status} ${Buffer.from(body).toString()}`
      if (status !== 200) throw new RelayError('target_failed', `The relay refused the delivery: ${reason}`)
      const wait = { signal, ...(timeout !== undefined && { timeout }) }
      const [delivery] = await deliveries({ deliveryId: deliveryId(request, recorded) }, wait)
      if (!delivery) throw new Error('unreachable: the wait returns at least one')
      return delivery
    },
    replaceRoutes: (routes) => instance.replaceRoutes({ ...NO_ROUTES, ...routes }),
    signIn: (userId = 'tester') => signIn(instance, userId),
    [Symbol.asyncDispose]() {
      watch.end()
      return started[Symbol.asyncDispose]()
    },
  }
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

/** Wakes waiting tests at each delivery and attempt, and records which targets were attempted. */
class Watch {
  readonly #changes = new EventEmitter()
  readonly #end = new AbortController()
  /** `n target` of each attempt since the entry last arrived: a duplicate is attempted again. */
  readonly #attempted = new Set<string>()

  constructor() {
    // A test may wait for any number of deliveries at once.
    setMaxListeners(0, this.#changes, this.#end.signal)
  }

  onEvent(event: RelayEvent): void {
    if (event.type === 'delivery') {
      const { n, targets } = event.receipt
      for (const target of targets) this.#attempted.delete(`${n} ${target}`)
    } else if (event.type === 'attempt') {
      const { n, attempt } = event.attempt
      this.#attempted.add(`${n} ${attempt.target}`)
    } else return
    this.#changes.emit('change')
  }

  /** Targets at which an entry waits for its first attempt since it last arrived. */
  waiting({ n, forwards }: Summary): string[] {
    const pending = Object.entries(forwards).filter(([, { status }]) => status === 'waiting')
    return pending.map(([target]) => target).filter((target) => !this.#attempted.has(`${n} ${target}`))
  }

  /** Resolves at the next delivery or attempt. @throws AbortError when `signal` aborts first; RelayError `cancelled` */
  async next(signal: AbortSignal): Promise<void> {
    try {
      await once(this.#changes, 'change', { signal: AbortSignal.any([signal, this.#end.signal]) })
    } catch (error) {
      this.#end.signal.throwIfAborted()
      throw error
    }
  }

  /** Ends all waits: the relay has stopped. */
  end(): void {
    this.#end.abort(new RelayError('cancelled', 'The relay stopped while a test waited for a delivery'))
  }
}

/** Waits for matching deliveries. @throws RelayError as {@link TestRelay.deliveries} */
async function waitForDeliveries(
  journal: Journal,
  watch: Watch,
  wanted: DeliveryFilter,
  { count = 1, timeout = TIMEOUT_MS, signal }: WaitOptions,
): Promise<TestDelivery[]> {
  const events = [wanted.event ?? []].flat().map(parseMatch)
  const filter: Filter = { events, ...(wanted.repo !== undefined && { repo: wanted.repo }) }
  const limited = deadline(timeout, signal)
  for (;;) {
    // Called before the journal is read, so that no change is missed.
    const changed = watch.next(limited)
    changed.catch(() => {})
    await journal.flush()
    const found = await matching(journal, filter, wanted.deliveryId)
    const isReady = found.length >= count && found.every((each) => watch.waiting(each).length === 0)
    if (isReady || count === 0) return describe(journal, found)
    await changed.catch(async (error: unknown) => {
      signal?.throwIfAborted()
      if (!limited.aborted) throw error
      const names = [[wanted.event ?? []].flat().join(' or '), wanted.repo, wanted.deliveryId].filter(Boolean)
      const what = names.length > 0 ? ` (${names.join(', ')})` : ''
      const newest = await matching(journal, { last: MAX_LISTED }, undefined)
      const arrived = newest.map((each) => nameOf(each, watch)).join('; ') || 'none'
      throw new RelayError(
        'timed_out',
        `Waited ${formatDuration(timeout)} for ${count} forwarded${what}, got ${found.length}. Received: ${arrived}`,
      )
    })
  }
}

/** Returns matching deliveries, oldest first. With an id, the search stops at the newest match. */
async function matching(journal: Journal, filter: Filter, id: string | undefined): Promise<Summary[]> {
  const found: Summary[] = []
  for await (const each of journal.select(filter)) {
    if (id !== undefined && each.deliveryId !== id) continue
    found.push(each)
    if (id !== undefined) break
  }
  return found.toReversed()
}

/** Adds payload and attempts. Deliveries that retention has removed meanwhile are left out. */
async function describe(journal: Journal, found: readonly Summary[]): Promise<TestDelivery[]> {
  const deliveries: TestDelivery[] = []
  for (const { n } of found) {
    const [entry, all] = await Promise.all([journal.read(n), journal.attempts(n)])
    if (!entry) continue
    const attempts = all.map(({ target, outcome, status, answer, error }) => {
      return { target: labelOf(target), outcome, status, answer: Buffer.from(answer).toString(), error }
    })
    const json = jsonBytes(entry)
    deliveries.push({ ...entry, payload: json && parseJson(json), attempts })
  }
  return deliveries
}

/** Formats a delivery: `#1 issues.opened octo/demo#1, not yet answered by http://localhost:3000`. */
function nameOf(summary: Summary, watch: Watch): string {
  const { n, event, action, repo, number } = summary
  const place = repo === null ? '' : ` ${repo}${number === null ? '' : `#${number}`}`
  const pending = watch.waiting(summary).map(labelOf)
  const rest = pending.length > 0 ? `, not yet answered by ${pending.join(', ')}` : ''
  return `#${n} ${event}${action === null ? '' : `.${action}`}${place}${rest}`
}
