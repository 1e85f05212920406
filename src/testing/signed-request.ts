import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import { type Fixture, fromFixture } from '../fixtures/fixture.js'
import { type Edit, readPath } from '../replay/edit.js'
import { prepare, withFreshId } from '../replay/prepare.js'
import type { WebhookRequest } from '../webhook/intake.js'

/** GitHub's published example secret, which signs the fixtures of this package. It protects nothing. */
export const TEST_SECRET = "It's a Secret to Everybody"

export interface SignOptions {
  /** Secret of the receiver. Default: {@link TEST_SECRET}. */
  readonly secret?: string
  /**
   * Payload fields to change before signing, by path: `{ 'issue.number': 7, 'issue.labels[0].name': 'bug' }`. The rest keeps
   * its formatting.
   */
  readonly set?: Readonly<Record<string, unknown>>
  /** Part to corrupt after signing, so that the receiver must refuse the request. */
  readonly tamper?: 'signature' | 'body'
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

/** Same request, with the order and spelling of its header lines. @throws RelayError `usage` as {@link signedRequest}. */
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
    throw new RelayError('usage', `Cannot set '${text}': not a path like pull_request.labels[0].name`)
  })
}
