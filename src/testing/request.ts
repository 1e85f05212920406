import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { anywhere } from '../base/command-line.js'
import type { Cancellable } from '../base/wait.js'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import type { ProviderName } from '../base/settings.js'
import { schemeOf } from '../codehost/schemes.js'
import { readPath } from '../replay/edit.js'
import { type Fixture, fromFixture, toFixture } from '../replay/fixture.js'
import { isScheme, readFixtures as load, type NamedFixture, packagedFolder } from '../replay/load.js'
import { prepareRequest, type Tamper } from '../replay/prepare.js'
import { deliveryOf, exampleDelivery, synthesize } from '../replay/synthesize.js'
import { writeJson } from '../webhook/encodings.js'
import type { WebhookRequest } from '../webhook/intake.js'

/** GitHub's published example secret, which signs the fixtures of this package. It protects nothing. */
export const TEST_SECRET = "It's a Secret to Everybody"

/** Prefix of the fixtures in this package, as in an import. */
const PACKAGE_PREFIX = 'webhook-relay/fixtures/'

export interface LoadFixtureOptions extends Cancellable {
  /** Event of a file that has a bare payload without headers, e.g. `push`. */
  readonly event?: string
  /** Code host of such a file: `github` or `gitea`. Default: `github`. */
  readonly provider?: string
  /** Signature scheme of such a file, for a sender that is no code host, as in {@link FixtureOfOptions}. */
  readonly scheme?: string
}

/**
 * Reads one fixture: a delivery in a JSON file, in the format of `relay export`.
 * @param file a `file:` URL, such as `new URL('./opened.json', import.meta.url)`; a path relative to the working folder; or
 * a fixture of this package, such as `webhook-relay/fixtures/github/issues.opened.json`.
 * @throws RelayError `usage` with file, line and field: missing, unreadable, not a fixture, or a folder; `too_large` for a
 * body over 25 MiB.
 * @see docs/replay.md for the format
 */
export async function loadFixture(file: string | URL, options: LoadFixtureOptions = {}): Promise<Fixture> {
  const [first, second] = await loadFixtures(file, options)
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
  const given = typeof folder === 'string' ? folder : fileURLToPath(folder)
  const isPackaged = given.startsWith(PACKAGE_PREFIX)
  const found: NamedFixture[] = []
  const at = isPackaged ? path.join(packagedFolder(), given.slice(PACKAGE_PREFIX.length)) : given
  const { scheme, provider = scheme && sourceNameOf(scheme), ...rest } = options
  for await (const each of load([at], { ...rest, provider, scheme })) found.push(each)
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
  /** Body to send instead of an example: an object, written as its sender does, or the exact text. */
  readonly body?: string | object
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
  const { provider = 'github', scheme, body } = options
  if (scheme === undefined && body === undefined)
    return synthesize(provider, event, Date.now(), { command: anywhere })
  const sent = scheme === undefined ? provider : checkedScheme(scheme)
  const from = { name: options.source ?? sourceNameOf(sent), schemeText: sent }
  if (body === undefined) return toFixture(exampleDelivery(from, event, { command: anywhere }))
  const text = typeof body === 'string' ? body : writeJson(schemeOf(sent).style(event), body)
  return toFixture(deliveryOf(from, event, Buffer.from(text)).recorded)
}

function checkedScheme(scheme: string): string {
  if (isScheme(scheme)) return scheme
  throw new RelayError('settings', `relay knows no scheme ${JSON.stringify(scheme)}`)
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

export interface SignedRequestOptions extends SignOptions {
  /** URL at which your application receives webhooks. Default: `http://localhost/webhook`. */
  readonly url?: string | URL
}

/**
 * Creates the request of a code host that delivers this fixture: a POST with the recorded headers and the exact bytes of
 * the body. A recorded signature made with the secret stays; otherwise all signatures are made again. The result is a
 * standard `Request`, for `app.request(…)` and `app.fetch(…)` of any fetch-style application and for `fetch` itself.
 * @throws RelayError `usage` when a field cannot be set.
 */
export function signedRequest(
  fixture: Fixture,
  { url = 'http://localhost/webhook', ...options }: SignedRequestOptions = {},
): Request {
  const { headers, body } = signed(fixture, options)
  const lines = headers.map(([name, value]): [string, string] => [name, value])
  // Copied because a body must not be in shared memory.
  return new Request(url, { method: 'POST', headers: lines, body: new Uint8Array(body) })
}

/**
 * Makes the signed request with the order and spelling of its header lines. @throws RelayError `usage` as {@link
 * signedRequest}
 */
export function signed(
  fixture: Fixture,
  { secret = fixture.secret ?? TEST_SECRET, set = {}, tamper, keepId = false }: SignOptions,
): WebhookRequest {
  const edits = Object.entries(set).map(([text, value]) => {
    const path = readPath(text)
    if (path) return { path, value }
    throw new RelayError('usage', `Cannot set '${text}': not a path like pull_request.labels[0].name`)
  })
  const { headers, body } = prepareRequest(fromFixture(fixture), {
    secret: new Secret(secret),
    edits,
    tamper,
    freshId: !keepId,
  })
  return { headers, body }
}
