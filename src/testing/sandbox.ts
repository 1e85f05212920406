import { RelayError } from '../base/errors.js'
import { parseUrl } from '../base/address.js'
import { Secret } from '../base/secret.js'
import { readResponseText, sendOnce } from '../net/client.js'
import type { Faults } from '../sandbox/faults.js'
import { type Sandbox, type SandboxOptions, openSandbox as start } from '../sandbox/sandbox.js'
import type { SandboxState } from '../sandbox/state.js'
import { TEST_SECRET } from './request.js'

type Client = SandboxOptions['client']

/**
 * Emulated code host with the paths of GitHub Enterprise Server and the repository `octo/demo`: issues #1 and #4 (locked),
 * pull requests #2, #3 (conflicts) and #5. Everything is in memory, limited to the last 10,000 comments, 10,000 reactions
 * and 1000 requests. Lists are oldest first.
 */
export interface TestSandbox extends Pick<
  SandboxState,
  'issue' | 'comments' | 'reviewComments' | 'reactions' | 'merges' | 'requests'
> {
  /** Web address. The API is at `/api/v3`, OAuth at `/login/oauth`. */
  readonly url: string
  /** Makes its operations fail: `sandbox.faults.next('comment', '502')`. */
  readonly faults: Pick<Faults, 'next' | 'always' | 'clear'>
  /** Gets an access token of the user `octo` through the consent page. Default `scope`: `repo`. */
  token(scope?: string): Promise<string>
  /** Resolves when every check so far has completed, and every webhook was delivered or has failed. */
  idle(): Promise<void>
}

export interface TestSandboxOptions extends Partial<
  Pick<SandboxOptions, 'client' | 'lifetimes' | 'log' | 'clock' | 'port' | 'deviceFlow' | 'checkDuration'>
> {
  /** Receiver of webhooks; a function if its URL is known only later. Default: none. */
  readonly webhook?: string | (() => string)
  /** Secret that signs the webhooks. Default: {@link TEST_SECRET}. */
  readonly secret?: string
}

/** The first OAuth application, if the options name none. */
const CLIENT: Client = { id: 'test-client', secret: 'test-client-secret' }
/** Nothing listens here and nothing is sent here: the code is read from the redirect's URL. */
const REDIRECT_URI = 'http://127.0.0.1:1/callback'

/**
 * Starts a sandbox without a relay, on a free port of 127.0.0.1. Stop it with `await using`. The first OAuth application is
 * `test-client`, its secret `test-client-secret`, unless `client` names another.
 * @throws RelayError `unavailable` when a given port is in use.
 */
export async function startSandbox(options: TestSandboxOptions = {}): Promise<TestSandbox & AsyncDisposable> {
  const { webhook, secret = TEST_SECRET, client = CLIENT, ...rest } = options
  const url = typeof webhook === 'string' ? () => webhook : webhook
  const sandbox = await start({ ...rest, client, webhook: url && { url, secret: new Secret(secret) } })
  return testSandboxOf(sandbox, client)
}

/** Returns the members of a sandbox that tests use. */
export function testSandboxOf(sandbox: Sandbox, client: Client): TestSandbox & AsyncDisposable {
  const { url, state, faults } = sandbox
  return {
    url,
    faults,
    reviewComments: state.reviewComments,
    issue: (repo, number) => state.issue(repo, number),
    get comments() {
      return state.comments
    },
    get reactions() {
      return state.reactions
    },
    get merges() {
      return state.merges
    },
    get requests() {
      return state.requests
    },
    token: (scope) => tokenOf(url, client, scope),
    idle: () => sandbox.idle(),
    [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
  }
}

/**
 * Gets an access token from a sandbox in the way of a browser and an application: consent page, form, token endpoint.
 * @throws RelayError `unauthenticated` when the sandbox gives none.
 */
export async function tokenOf(url: string, { id, secret }: Client, scope = 'repo'): Promise<string> {
  const query = new URLSearchParams({ client_id: id, redirect_uri: REDIRECT_URI, scope })
  const redirect = await consent(`${url}/login/oauth/authorize?${query.toString()}`)
  const code = parseUrl(redirect)?.searchParams.get('code') ?? ''
  const exchange = { client_id: id, client_secret: secret, code, redirect_uri: REDIRECT_URI }
  const response = await postForm(`${url}/login/oauth/access_token`, exchange)
  const text = await readResponseText(response)
  const isGrant = response.status === 200 && text.includes('"access_token"')
  if (!isGrant) throw new RelayError('unauthenticated', `The sandbox gave no token: ${text}`)
  return JSON.parse(text).access_token
}

/**
 * Opens a sandbox's consent page and agrees like a browser. Returns the URL that redirects to the application; empty when the
 * sandbox refused the authorize request.
 */
export async function consent(page: string): Promise<string> {
  const html = await readResponseText(await sendOnce(page, { method: 'GET', headers: {} }))
  const [, authenticity = ''] = /name="authenticity_token" value="([^"]+)"/.exec(html) ?? []
  const { origin, pathname } = new URL(page)
  const { header, discard } = await postForm(origin + pathname, {
    authenticity_token: authenticity,
    authorize: '1',
  })
  discard()
  return header('location') ?? ''
}

function postForm(url: string, fields: Readonly<Record<string, string>>) {
  return sendOnce(url, {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
    body: String(new URLSearchParams(fields)),
  })
}
