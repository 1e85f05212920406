import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { type Fixture, fromFixture } from '../journal/fixture.js'
import { type Edit, readPath } from '../replay/edit.js'
import { prepare, withFreshId } from '../replay/prepare.js'
import type { WebhookRequest } from '../webhook/intake.js'
import { TEST_SECRET } from './test-secret.js'

export interface SignOptions {
  /** What the receiver verifies with. Default: {@link TEST_SECRET}. */
  readonly secret?: string
  /**
   * Fields of the payload to be changed before it is signed, by path: `{ 'issue.number': 7, 'issue.labels[0].name': 'bug' }`.
   * The rest is written in the style it had.
   */
  readonly set?: Readonly<Record<string, unknown>>
  /** Spoils this after signing, so that it is to be refused. */
  readonly tamper?: 'signature' | 'body'
  /** Sends the recorded delivery id. Default: a fresh one each time, as a receiver may know the recorded one already. */
  readonly keepId?: boolean
}

export interface SignedRequestOptions extends SignOptions {
  /** Where your application receives webhooks. Default: `http://localhost/webhook`. */
  readonly url?: string | URL
}

/**
 * The request that a code host would make to deliver this fixture: a POST with the recorded headers and the body's exact
 * bytes. A recorded signature that was made with the secret is kept; otherwise all signatures are made anew. It is a
 * standard `Request`, for `app.request(…)` and `app.fetch(…)` of any fetch-style application and for `fetch` itself.
 * @throws RelayError `usage` when a field cannot be set.
 */
export function signedRequest(
  fixture: Fixture,
  { url = 'http://localhost/webhook', ...options }: SignedRequestOptions = {},
): Request {
  const { headers, body } = signed(fixture, options)
  const lines = headers.map(([name, value]): [string, string] => [name, value])
  // Copied, since a body must not lie in shared memory.
  return new Request(url, { method: 'POST', headers: lines, body: new Uint8Array(body) })
}

/** The same, header lines in their order and spelling. @throws RelayError `usage` as {@link signedRequest}. */
export function signed(
  fixture: Fixture,
  { secret = TEST_SECRET, set = {}, tamper, keepId = false }: SignOptions,
): WebhookRequest {
  const request = prepare(fromFixture(fixture), { secret: new Secret(secret), edits: editsOf(set), tamper })
  return keepId ? request : withFreshId(request)
}

function editsOf(set: Readonly<Record<string, unknown>>): Edit[] {
  return Object.entries(set).map(([text, value]) => {
    const path = readPath(text)
    if (path) return { path, value }
    throw new RelayError('usage', `Cannot set '${text}': write it as in pull_request.labels[0].name`)
  })
}
