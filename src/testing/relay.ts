import { hostSource, pathOf, PROVIDER_NAMES, shownSource } from '../base/source-names.js'
import { didYouMean } from '../base/text.js'
import type { Core } from '../core.js'
import { isolateCallbacks } from '../base/callbacks.js'
import { type Cancellable, onAbort } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import {
  abortSignal,
  anyObject,
  type ValueCheck,
  checkMembers,
  type Checks,
  filledText,
  isText,
  eachOf,
  members,
  milliseconds,
  must,
  optional,
  optionWords,
  text,
  texts,
  timerMs,
  wholeNumber,
  type Words,
  checkArgument,
} from '../base/checks.js'
import { StopGate } from '../base/stop-gate.js'
import { inOwnWords } from '../base/own-words.js'
import { Secret } from '../base/secret.js'
import { DEFAULTS, type NamedScheme, NO_ROUTES, type RouteSettings, type Settings } from '../base/settings.js'
import { fieldsOf } from '../json/parse.js'
import { readResponseText, sendOnce } from '../net/client.js'
import { type Fixture, fromFixture, isOfCodeHost } from '../replay/fixture.js'
import { entryOf, type FoundEntry } from '../replay/entry.js'
import { deliveryId } from '../replay/prepare.js'
import { openSender } from '../replay/send.js'
import { SERVE_OPTIONS } from '../serve/options.js'
import type { SandboxSettings, ServeOptions, Serving } from '../serve/serve.js'
import { listenerOf, replaceRoutes, servingOf } from '../serve/serving.js'
import type { Instance } from '../serve/instance.js'
import { indexHeaders } from '../http/headers.js'
import { senderOf } from '../senders/senders.js'
import type { Source } from '../senders/source.js'
import type { WebhookRequest } from '../senders/request.js'
import { checkSettings, checkSomeSettings, declaredName, SETTING_CHECKS } from '../senders/check-settings.js'
import { start as startInstance, type Started } from '../serve/start.js'
import {
  checkedScheme,
  checkFixture,
  EDIT_OPTIONS,
  kitSecrets,
  type SignOptions,
  signed,
  TEST_SECRET,
} from './request.js'
import type { Sandbox } from '../sandbox/sandbox.js'
import { consent, type TestSandbox, testSandboxOf } from './sandbox.js'
import {
  type DeliveryFilter,
  type NothingMoreOptions,
  type TestDelivery,
  Waits,
  type WaitOptions,
} from './waits.js'
import type { RelayEvent } from '../events/events.js'
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
  readonly settings?: Partial<Omit<Settings, keyof typeof DECIDED>>
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

const OF_SANDBOX = 'the code host of a test is its sandbox'
/** Settings that are not for a test to give, and why. */
const DECIDED = {
  provider: OF_SANDBOX,
  providerUrl: OF_SANDBOX,
  oauthClient: OF_SANDBOX,
  sandbox: OF_SANDBOX,
  routes: 'give the options forward, exec, ignore and routes',
  sources: "give the option sources, as in startRelay({ sources: { billing: 'stripe' } })",
}

const ROUTES: Checks<RouteSettings> = {
  forward: optional(texts),
  exec: optional(texts),
  ignore: optional(texts),
  routes: optional(eachOf('routes', anyObject)),
  timeout: optional(milliseconds),
  reply: optional(texts),
}
const START_OPTIONS: Checks<TestRelayOptions> = {
  ...SERVE_OPTIONS,
  ...ROUTES,
  secret: optional(filledText),
  sources: optional(checkSources),
  settings: optional(anyObject),
  retries: optional(eachOf('delays in milliseconds', timerMs)),
}
const event = must('an event, or a list of events', (value) => [value].flat().every(isText))
const FILTER: Checks<DeliveryFilter> = {
  event: optional(event),
  repo: optional(text),
  deliveryId: optional(text),
}
const UNTIL: ValueCheck = (value) => {
  if (value === 'settled') return undefined
  const attempts = members({ attempts: wholeNumber(0) })
  if (anyObject(value) === undefined) return attempts(value)
  const hint = isText(value) ? didYouMean(value, ['settled']) : ''
  return ` must be 'settled' or { attempts: 2 }${hint}`
}
const DELIVER_OPTIONS: Checks<DeliverOptions> = {
  ...EDIT_OPTIONS,
  timeout: optional(timerMs),
  until: optional(UNTIL),
  signal: optional(abortSignal),
}
const WAIT_OPTIONS: Checks<WaitOptions> = {
  count: optional(wholeNumber(0)),
  timeout: optional(timerMs),
  until: optional(UNTIL),
  signal: optional(abortSignal),
}
const NOTHING_OPTIONS: Checks<NothingMoreOptions> = {
  within: optional(timerMs),
  signal: optional(abortSignal),
}
const SOURCE: Checks<TestSource> = { scheme: text, secret: optional(filledText) }

/** Checks the sources of {@link TestRelayOptions}. Their schemes are read afterwards. */
function checkSources(value: unknown): string | undefined {
  const sources = fieldsOf(value)
  if (anyObject(value) !== undefined) return `${anyObject(value)}: { billing: 'stripe' }`
  for (const [name, source] of Object.entries(sources)) {
    if (declaredName(name) !== undefined) return `: the name ${name}${declaredName(name)}`
    const wrong = isText(source) ? undefined : members(SOURCE)(source)
    if (wrong !== undefined) return `: the source ${name}${wrong.replace(/^ has no /, ' has no option ')}`
  }
  return undefined
}

const START_WORDS = optionWords('startRelay', {
  elsewhere: {
    names: SETTING_CHECKS,
    words: 'it is one of settings, as in startRelay({ settings: { maxBody: 1000 } })',
  },
})
const ROUTES_WORDS: Words = {
  ...optionWords('replaceRoutes'),
  whole: 'replaceRoutes: the routes',
  unknown: 'replaceRoutes has no',
  member: 'replaceRoutes:',
  example: "replaceRoutes({ forward: ['http://localhost:3000/'] })",
}

/** Words for a filter, the first argument of a wait. */
function filterWords(call: string, options: object): Words {
  return {
    kind: 'usage',
    whole: `${call}: the filter`,
    unknown: 'a filter of deliveries has no',
    member: `${call}: the filter's`,
    example: `${call}({ event: 'push' })`,
    elsewhere: { names: options, words: 'it is one of the options, the second argument' },
  }
}

/** Words for the options of a wait. */
function waitWords(call: string): Words {
  return optionWords(call, { elsewhere: { names: FILTER, words: 'it is of the filter, the first argument' } })
}

/**
 * Starts a {@link TestRelay}. It does not keep the process alive: a test that fails before it stops the relay ends all the
 * same. `forward`, `exec` and `ignore` have the syntax of `relay serve`: `issues.*=http://localhost:3000/webhook`.
 * @throws RelayError `settings` for an invalid route or setting, `usage` for an invalid option; the signal's reason
 */
export function startRelay(options: TestRelayOptions = {}): Promise<TestRelay> {
  return held(async () => {
    checkMembers(options, START_OPTIONS, START_WORDS)
    const { signal } = options
    signal?.throwIfAborted()
    const { relay, gate } = await start(options)
    if (signal) onAbort(signal, () => void gate.stop().catch(() => {}))
    signal?.throwIfAborted()
    return relay
  })
}

function notify(watch: Watch, event: RelayEvent): void {
  if (event.type === 'delivery') watch.delivered(event.receipt)
  if (event.type === 'attempt') watch.attempted(event.attempt.n, event.attempt.attempt)
}

async function start(
  options: TestRelayOptions,
): Promise<{ readonly relay: TestRelay; readonly gate: StopGate }> {
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
  checkSomeSettings(given)
  for (const [name, why] of Object.entries(DECIDED))
    if (Object.hasOwn(given, name))
      throw new RelayError('settings', `startRelay: the setting ${name} cannot be given: ${why}`)
  const program = listenerOf(callbacks, log)
  const sources = Object.entries(givenSources).map(([name, source]) => sourceOf(name, source, secret))
  const watch = new Watch()
  const limits = retries && { retries: [...retries], ...(retries[0] !== undefined && { probe: retries[0] }) }
  const all: SandboxSettings = {
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
  }
  checkSettings(all)
  const started = await inOwnWords(() =>
    startInstance(all, {
      log,
      clock,
      seams: { background: true, ...seams, limits: { ...limits, ...seams?.limits } },
      env,
      onEvent(event) {
        program(event)
        notify(watch, event)
      },
    }),
  )
  return testRelay(started, watch, new Map(sources.map(({ name, secret }) => [name, secret])))
}

/** Reads one of `sources`. @throws RelayError `settings` for an unknown scheme */
function sourceOf(
  name: string,
  source: string | TestSource,
  common: string,
): Required<TestSource> & { readonly name: string } {
  if (typeof source === 'string') return { name, scheme: checkedScheme(source), secret: common }
  return { name, scheme: checkedScheme(source.scheme), secret: source.secret ?? common }
}

/** @param secrets of the sources, by their names */
function testRelay(
  started: Started,
  watch: Watch,
  secrets: ReadonlyMap<string, string>,
): { readonly relay: TestRelay; readonly gate: StopGate } {
  const { instance } = started
  const gate = new StopGate('The relay was stopped: startRelay starts another one', async () => {
    watch.end()
    await started[Symbol.asyncDispose]()
  })
  const { url, relay, settings } = servingOf(started, gate)
  const { core, sandbox } = instance
  const { oauthClient: client } = settings
  if (!sandbox || !client) throw new Error('unreachable: a sandbox was asked for')
  const secret = settings.webhookSecrets.current.reveal()
  const testSandbox = testSandboxOf(sandbox, { id: client.id, secret: client.secret.reveal() }, gate)
  const waits = new Waits(core.journal, watch)
  const stop = (): Promise<void> => held(() => gate.stop())
  const test: TestRelay = {
    url,
    relay,
    settings,
    secret,
    sandbox: testSandbox,
    ...waitingMethods({
      instance,
      sandbox,
      gate,
      waits,
      secretOf: (source) => secrets.get(source) ?? secret,
    }),
    retryNow() {
      gate.check()
      instance.retryNow()
    },
    replaceRoutes(routes) {
      gate.check()
      checkMembers(routes, ROUTES, ROUTES_WORDS)
      replaceRoutes(instance, { ...NO_ROUTES, ...routes })
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
  return { relay: test, gate }
}

interface WaitingParts {
  readonly instance: Instance
  readonly sandbox: Sandbox
  readonly gate: StopGate
  readonly waits: Waits
  readonly secretOf: (source: string) => string
}

/** The methods of a relay that wait. */
function waitingMethods({
  instance,
  sandbox,
  gate,
  waits,
  secretOf,
}: WaitingParts): Pick<TestRelay, 'deliver' | 'deliveries' | 'nothingMore' | 'signIn'> {
  const running = <Result>(work: () => Promise<Result>, options: Cancellable = {}): Promise<Result> =>
    held(() => gate.run(work, () => options.signal))
  return {
    deliver: (fixture, options = {}) =>
      running(async () => {
        checkFixture('deliver', fixture)
        checkMembers(options, DELIVER_OPTIONS, optionWords('deliver'))
        const { timeout, signal, until, ...signing } = options
        const secret = secretOf(fromFixture(fixture).provider)
        const entry = await send(instance, fixture, { ...signing, secret }, signal)
        const limits = { signal, ...(timeout !== undefined && { timeout }), ...(until && { until }) }
        const delivery = await waits.delivery(entry, limits)
        if (!delivery) throw removed()
        return delivery
      }, options),
    deliveries: (wanted = {}, options = {}) =>
      running(async () => {
        checkMembers(wanted, FILTER, filterWords('deliveries', WAIT_OPTIONS))
        checkMembers(options, WAIT_OPTIONS, waitWords('deliveries'))
        return waits.deliveries(wanted, options)
      }, options),
    nothingMore: (wanted = {}, options = {}) =>
      running(async () => {
        checkMembers(wanted, FILTER, filterWords('nothingMore', NOTHING_OPTIONS))
        checkMembers(options, NOTHING_OPTIONS, waitWords('nothingMore'))
        options.signal?.throwIfAborted()
        await sandbox.idle()
        await waits.nothing(wanted, options)
      }, options),
    signIn: (userId = 'tester') =>
      running(async () => {
        checkArgument('signIn: the user id', userId, filledText)
        return signIn(instance, userId)
      }),
  }
}

/**
 * Sends a signed fixture to its source's address, and returns the entry that it has become.
 * @throws RelayError as {@link TestRelay.deliver}
 */
async function send(
  { url, core }: Instance,
  fixture: Fixture,
  signing: SignOptions,
  signal: AbortSignal | undefined,
): Promise<FoundEntry> {
  const recorded = fromFixture(fixture)
  const { provider: source, scheme = source } = recorded
  const at = `${url}${core.sources.has(source) ? pathOf(source) : '/webhook'}`
  const request = signed(fixture, signing, at)
  if (!core.sources.has(source)) checkReceives(core, request, { name: source, scheme })
  const before = await core.journal.newest()
  await using sender = openSender(at)
  const { status, error, body } = await sender.send(request, { signal })
  const reason = error ?? `${status} ${Buffer.from(body).toString()}`
  if (status !== 200) {
    const hint = status === 401 ? differenceOf(core.sources.get(source), scheme) : ''
    throw new RelayError('target_failed', `The relay refused the delivery: ${reason}${hint}`)
  }
  const sent = { id: deliveryId(request, recorded), before, source, size: request.body.byteLength }
  const entry = await entryOf(core.journal, sent)
  if (!entry) throw removed()
  return entry
}

/** The relay keeps so few deliveries that one is gone before it is read. */
function removed(): RelayError {
  return new RelayError(
    'target_failed',
    'deliver: the relay has removed the delivery already. Keep more of them, with the settings keep and keepMax',
  )
}

/** Says that a source is declared with another sender than signed a delivery. Empty if it is the same. */
function differenceOf(source: Source | undefined, scheme: string): string {
  const { name } = senderOf(scheme)
  if (!source || source.sender.name === name) return ''
  return `. The source ${source.name} receives from ${source.sender.name}, and the fixture is of ${name}`
}

/**
 * Refuses a fixture if the relay lacks its source. A code host's source also receives fixtures of other code hosts that
 * sign in the same way.
 * @throws RelayError `usage` that says how to declare the source
 */
function checkReceives(
  { sources, host }: Core,
  request: WebhookRequest,
  { name, scheme }: NamedScheme,
): void {
  const isOfHost = isOfCodeHost({ provider: name, scheme })
  if (
    isOfHost &&
    sources.get(host.source)?.sender.hasSignature({ ...request, lines: indexHeaders(request.headers) }) ===
      true
  )
    return
  // A code host is a sender, too, under its own name.
  const known = PROVIDER_NAMES.find((each) => hostSource(each) === name) ?? name
  const named = isOfHost ? { name: known, scheme: known } : { name, scheme }
  const declared = `startRelay({ sources: { ${JSON.stringify(named.name)}: ${JSON.stringify(named.scheme)} } })`
  if (isOfHost)
    throw new RelayError(
      'usage',
      `deliver: a delivery of ${known} is not signed as the relay's code host signs, which speaks GitHub's protocol. ` +
        `Receive it as one of a source: fixtureOf(event, { scheme: '${known}' }) with ${declared}`,
    )
  const names = [...sources.values()]
    .map((source) => source.name)
    .filter((each) => shownSource(each) !== undefined)
  throw new RelayError(
    'usage',
    `deliver: the relay has no source ${name}${didYouMean(name, names)}. Declare it: ${declared}`,
  )
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
