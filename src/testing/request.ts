import { hostSource } from '../base/source-names.js'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { types } from 'node:util'
import { withRest } from '../base/address.js'
import {
  checkArgument,
  checkMembers,
  type Checks,
  filledText,
  flag,
  isAddress,
  isText,
  json,
  members,
  must,
  oneOf,
  optional,
  optionWords,
  text,
  anyObject,
  abortSignal,
} from '../base/checks.js'
import type { Cancellable } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { PROVIDER_NAMES, type ProviderName, type WebhookSecrets } from '../base/settings.js'
import { didYouMean } from '../base/text.js'
import { fieldsOf } from '../json/parse.js'
import type { KeyKind } from '../senders/algorithms.js'
import { makeKeyPair } from '../senders/keys.js'
import { isScheme, senderOf } from '../senders/senders.js'
import { meantScheme } from '../senders/source-text.js'
import { missingIn, readPath } from '../replay/edit.js'
import { readContent } from '../senders/content.js'
import { type Fixture, fromFixture, type NamedFixture, toFixture } from '../replay/fixture.js'
import { fixtureProblem, packagedFolder, readFixtures as load } from '../replay/load.js'
import { schemeDefect, sourceName } from '../senders/check-settings.js'
import type { Tamper, WebhookRequest } from '../senders/request.js'
import { prepareRequest } from '../replay/prepare.js'
import {
  deliveryOf,
  exampleDelivery,
  type ExampleWords,
  synthesize,
  triggerEvents,
} from '../replay/synthesize.js'

/** GitHub's published example secret, which signs the fixtures of this package. It protects nothing. */
export const TEST_SECRET = "It's a Secret to Everybody"

/** Prefix of the fixtures in this package, as in an import. */
const PACKAGE_PREFIX = 'webhook-relay/fixtures/'

export interface LoadFixtureOptions extends Cancellable {
  /** Event of a file that has a bare payload without headers, e.g. `push`. */
  readonly event?: string
  /** Code host of such a file: `github`, `gitea` or `gitlab`. Default: `github`. */
  readonly provider?: string
  /** Signature scheme of such a file, for a sender that is no code host, as in {@link FixtureOfOptions}. */
  readonly scheme?: string
}

const LOAD_OPTIONS: Checks<LoadFixtureOptions> = {
  event: optional(filledText),
  provider: optional(text),
  scheme: optional(text),
  signal: optional(abortSignal),
}
const place = must(
  'a path or a file: URL',
  (value) => (isText(value) && value !== '') || (value instanceof URL && value.protocol === 'file:'),
)

/**
 * Reads one fixture: a delivery in a JSON file, in the format of `relay export`.
 * @param file a `file:` URL, such as `new URL('./opened.json', import.meta.url)`; a path relative to the working folder; or
 * a fixture of this package, such as `webhook-relay/fixtures/github/issues.opened.json`.
 * @throws RelayError `usage` with file, line and field: missing, unreadable, not a fixture, or a folder; `too_large` for a
 * body over 25 MiB.
 * @see docs/replay.md for the format
 */
export async function loadFixture(file: string | URL, options: LoadFixtureOptions = {}): Promise<Fixture> {
  const [first, second] = await readAll('loadFixture', file, options)
  if (first && !second) return first.fixture
  throw new RelayError('usage', `${String(file)} is a folder. Use loadFixtures to read it`)
}

/**
 * Reads every fixture in a folder and its subfolders, sorted by name. `name` is the file's path. `folder` takes the forms of
 * {@link loadFixture}'s `file`.
 * @throws RelayError as {@link loadFixture}; `usage` also for a folder without fixtures.
 */
export async function loadFixtures(
  folder: string | URL,
  options: LoadFixtureOptions = {},
): Promise<NamedFixture[]> {
  return readAll('loadFixtures', folder, options)
}

async function readAll(
  call: string,
  folder: string | URL,
  options: LoadFixtureOptions,
): Promise<NamedFixture[]> {
  checkArgument(`${call}: the ${call === 'loadFixture' ? 'file' : 'folder'}`, folder, place)
  checkMembers(options, LOAD_OPTIONS, optionWords(call))
  const given = typeof folder === 'string' ? folder : fileURLToPath(folder)
  const isPackaged = given.startsWith(PACKAGE_PREFIX)
  const found: NamedFixture[] = []
  const at = isPackaged ? path.join(packagedFolder(), given.slice(PACKAGE_PREFIX.length)) : given
  const { scheme, provider: sender, ...rest } = options
  const ofScheme = scheme && sourceNameOf(checkedScheme(scheme))
  const provider = sender === undefined ? ofScheme : checkedProvider(sender)
  for await (const each of load([at], { ...rest, provider, scheme, eventWords: "{ event: 'push' }" }))
    found.push(each)
  return found
}

export interface FixtureOfOptions {
  /** Code host that sends the delivery. Default: `github`. */
  readonly provider?: Exclude<ProviderName, 'sandbox'>
  /**
   * Signature scheme of another sender, as in `relay serve --source`: `stripe`, or `hmac header=X-Signature
   * prefix=sha256=`.
   */
  readonly scheme?: string
  /** Name of the source that receives it. Default: the first word of the scheme. */
  readonly source?: string
  /** Body to send instead of an example: an object, written as its sender does, or the exact text or bytes. */
  readonly body?: string | Uint8Array | object
}

const EVENTS_OPTIONS: Checks<EventsOptions> = { provider: optional(text), scheme: optional(text) }
const FIXTURE_OPTIONS: Checks<FixtureOfOptions> = {
  ...EVENTS_OPTIONS,
  source: optional(sourceName),
  body: optional(
    must('an object of JSON, or the exact text or bytes', (value) => {
      return isText(value) || types.isUint8Array(value) || isJsonObject(value)
    }),
  ),
}
/** False for a Map, a Date and the like, which are written as nothing or as something else. */
function isJsonObject(value: unknown): boolean {
  return Object.prototype.toString.call(value) === '[object Object]' && json(value) === undefined
}

/** Words for an error about the event of a body of the user's own. */
const MAKING = { event: 'The event', give: 'Give it to fixtureOf' }
type EventsOptions = Pick<FixtureOfOptions, 'provider' | 'scheme'>

/** The call that lists the events, and the option for a body, in messages. */
function wordsFor(name: keyof EventsOptions, value: string | undefined): ExampleWords {
  const of = value === undefined ? '' : `{ ${name}: '${value}' }`
  return { list: () => `events(${of})`, body: 'the option body' }
}

/** Returns the name of a scheme's source, if none is given. */
function sourceNameOf(scheme: string): string {
  return scheme.split(' ', 1).join('')
}

/**
 * Creates a delivery of an event, for example `push` or `issues.opened`, as the code host would send it now, with every
 * field of a real one. It is about the sandbox's repository `octo/demo`: issue events about #1, pull request events
 * about #2. With a `scheme`, it is a delivery of another sender: `fixtureOf('invoice.paid', { scheme: 'stripe' })`.
 * @throws RelayError `usage` for an event that `relay trigger --list` does not name, unless there is a `body`;
 * `settings` for an unknown scheme.
 */
export function fixtureOf(event: string, options: FixtureOfOptions = {}): Fixture {
  checkArgument('fixtureOf: the event', event, filledText)
  checkMembers(
    options,
    FIXTURE_OPTIONS,
    optionWords('fixtureOf', { example: `fixtureOf('${event}', { scheme: 'stripe' })` }),
  )
  const { scheme, body } = options
  const provider = checkedProvider(options.provider ?? 'github')
  if (scheme === undefined && body === undefined)
    return synthesize(provider, event, Date.now(), { words: wordsFor('provider', options.provider) })
  const sent = scheme === undefined ? provider : checkedScheme(scheme)
  const from = { name: options.source ?? sourceNameOf(sent), scheme: sent }
  if (body === undefined)
    return toFixture(exampleDelivery(from, event, { words: wordsFor('scheme', scheme) }))
  const exact =
    typeof body === 'string' || types.isUint8Array(body) ? body : senderOf(sent).write(event, body)
  return toFixture(deliveryOf(from, event, Buffer.from(exact), { words: MAKING }).recorded)
}

/** @throws RelayError `settings` for a scheme that relay does not know, with the nearest one */
export function checkedScheme(scheme: string): string {
  if (isScheme(scheme)) return scheme
  const defect = schemeDefect(scheme)
  if (defect !== undefined) throw new RelayError('settings', defect)
  const near = meantScheme(sourceNameOf(scheme))
  throw new RelayError('settings', `relay knows no scheme ${JSON.stringify(scheme)}${near}`)
}

/** @throws RelayError `settings` for a code host that relay does not know */
function checkedProvider(provider: string): string {
  const hosts = PROVIDER_NAMES.filter((name) => name !== 'sandbox')
  if (hosts.some((name) => name === provider)) return hostSource(provider)
  const near = didYouMean(provider, hosts)
  throw new RelayError('settings', `relay knows no code host ${JSON.stringify(provider)}${near}`)
}

/**
 * Lists the events that {@link fixtureOf} has an example of: those of GitHub, or of the code host or sender that the
 * options name.
 * @throws RelayError `settings` for an unknown scheme
 */
export function events(options: EventsOptions = {}): string[] {
  checkMembers(options, EVENTS_OPTIONS, optionWords('events', { example: "events({ scheme: 'stripe' })" }))
  const { provider = 'github', scheme } = options
  return triggerEvents(scheme === undefined ? checkedProvider(provider) : checkedScheme(scheme))
}

export interface SignOptions {
  /** Secret of the receiver, which signs as the fixture's sender does. Default: the fixture's own, else {@link TEST_SECRET}. */
  readonly secret?: string
  /**
   * Payload fields to change before signing, by path: `{ 'issue.number': 7, 'issue.labels[0].name': 'bug' }`. The rest keeps
   * its formatting.
   */
  readonly set?: Readonly<Record<string, unknown>>
  /** Part to corrupt after signing, so that the receiver must refuse the request. */
  readonly tamper?: Tamper
  /** Sends the recorded delivery id. Default: a new id each time, because a receiver may know the recorded one. */
  readonly keepId?: boolean
}

/** The options that `deliver` has, too. */
export const EDIT_OPTIONS: Checks<Pick<SignOptions, 'set' | 'keepId'>> = {
  set: optional(checkEdits),
  keepId: optional(flag),
}
/** Checks the new values of `set`. Their paths are read with the payload. */
function checkEdits(value: unknown): string | undefined {
  if (anyObject(value) !== undefined) return `${anyObject(value)}: { 'issue.number': 7 }`
  for (const [path, each] of Object.entries(fieldsOf(value))) {
    // Undefined would be written as nothing.
    const wrong = json(each)
    if (wrong !== undefined) return `['${path}']${wrong}`
  }
  return undefined
}
const TAMPERS: Readonly<Record<Tamper, true>> = { signature: true, body: true }
const SIGN_OPTIONS: Checks<SignedRequestOptions> = {
  ...EDIT_OPTIONS,
  secret: optional(filledText),
  tamper: optional(oneOf(Object.keys(TAMPERS))),
  url: optional(
    must('an address with http:// or https://', (value) =>
      isAddress(value instanceof URL ? value.href : value),
    ),
  ),
}

/** @throws RelayError `usage` for a value that is no fixture; it says what to pass instead */
export function checkFixture(call: string, fixture: unknown): void {
  const isFixture = must(
    isText(fixture) ? `an object: fixtureOf('${fixture}')` : "an object, such as fixtureOf('push')",
    (value) => anyObject(value) === undefined,
  )
  checkArgument(`${call}: the fixture`, fixture, (value) => {
    const wrong = isFixture(value)
    if (wrong !== undefined) return wrong
    if (members({ name: text, fixture: anyObject })(value) === undefined)
      return ' must be one of loadFixtures: give its fixture'
    const problem = fixtureProblem(value)
    return problem === undefined ? undefined : ` is invalid: ${problem}`
  })
}

/** Key pairs of the kit, one of each kind. They live as long as the process. */
const pairs = new Map<KeyKind, Secret>()

/** Secrets of a source in the kit: the text, or for a sender with a key pair the kit's own. */
export function kitSecrets(scheme: string, text: string): WebhookSecrets {
  const current = new Secret(text)
  const kind = senderOf(scheme).keyPairFor(current)
  if (!kind) return { current }
  const own = pairs.get(kind) ?? makeKeyPair(kind)
  pairs.set(kind, own)
  return { current, own }
}

/**
 * The public key of the kit for a sender that signs with a key pair. Set it in your program in place of the sender's key:
 * the program then accepts what the kit signs.
 * @param scheme as in {@link FixtureOfOptions}: `discord`
 * @throws RelayError `usage` for a sender whose secret signs; `settings` for an unknown scheme
 */
export function publicKeyOf(scheme: string): string {
  checkArgument('publicKeyOf: the scheme', scheme, filledText)
  const sender = senderOf(checkedScheme(scheme))
  const key = sender.publicHalf(kitSecrets(scheme, TEST_SECRET))
  if (key !== undefined) return key
  throw new RelayError(
    'usage',
    `${scheme} signs with a secret, not with a key pair: give the kit's secret to your program`,
  )
}

export interface SignedRequestOptions extends SignOptions {
  /** URL at which your application receives webhooks. Default: `http://localhost/webhook`. */
  readonly url?: string | URL
}

/**
 * Creates the request of a code host that delivers this fixture: a POST with the recorded headers and the exact bytes of
 * the body. A recorded signature made with the secret stays; otherwise all signatures are made again. The result is a
 * standard `Request`, for `app.request(…)` and `app.fetch(…)` of any fetch-style application and for `fetch` itself.
 * @throws RelayError `usage` when a field cannot be set, for what is no fixture, and for an invalid option.
 */
export function signedRequest(fixture: Fixture, given: SignedRequestOptions = {}): Request {
  checkFixture('signedRequest', fixture)
  checkMembers(given, SIGN_OPTIONS, optionWords('signedRequest'))
  const { url = 'http://localhost/webhook', ...options } = given
  const { headers, body, query, path } = signed(fixture, options, String(url))
  const lines = headers.map(([name, value]): [string, string] => [name, value])
  // Copied because a body must not be in shared memory.
  return new Request(withRest(new URL(url), { path, query }), {
    method: 'POST',
    headers: lines,
    body: new Uint8Array(body),
  })
}

/**
 * Makes the signed request to `url` with the order and spelling of its header lines. @throws RelayError `usage` as
 * {@link signedRequest}
 */
export function signed(
  fixture: Fixture,
  { secret = fixture.secret ?? TEST_SECRET, set = {}, tamper, keepId = false }: SignOptions,
  url: string,
): WebhookRequest {
  const recorded = fromFixture(fixture)
  const { value: payload } = readContent(recorded.body)
  const edits = Object.entries(set).map(([text, value]) => {
    const path = readPath(text)
    if (!path)
      throw new RelayError('usage', `Cannot set '${text}': not a path like pull_request.labels[0].name`)
    const missing = missingIn(payload, path)
    if (missing !== undefined) throw new RelayError('usage', `Cannot set '${text}': ${missing}`)
    return { path, value }
  })
  const { headers, body, query, path } = prepareRequest(recorded, {
    secrets: kitSecrets(recorded.scheme ?? recorded.provider, secret),
    edits,
    tamper,
    freshId: !keepId,
    payloadUrl: url,
  })
  return { headers, body, query, path }
}
