import { RelayError } from '../base/errors.js'
import { parseUrl } from '../base/address.js'
import { checkNames, type NamesOf } from '../base/names.js'
import { Secret } from '../base/secret.js'
import { onAbort } from '../base/wait.js'
import { readResponseText, sendOnce } from '../net/client.js'
import type { FaultControl } from '../sandbox/fault.js'
import { type Sandbox, type SandboxOptions, openSandbox } from '../sandbox/sandbox.js'
import type { SandboxState } from '../sandbox/state.js'
import { TEST_SECRET } from './request.js'
import { held } from './watch.js'

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
  readonly faults: FaultControl
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
  /** Stops the sandbox when it aborts, for example `t.signal` of node:test. */
  readonly signal?: AbortSignal | undefined
}

/** A sandbox that a test has started, and stops. */
export interface StartedSandbox extends TestSandbox, AsyncDisposable {
  /** Stops it, for `afterEach`. The same as `await using`. Called again, it does nothing. */
  stop(): Promise<void>
}

const OPTIONS: NamesOf<TestSandboxOptions> = {
  webhook: true,
  secret: true,
  signal: true,
  client: true,
  lifetimes: true,
  log: true,
  clock: true,
  port: true,
  deviceFlow: true,
  checkDuration: true,
}

/** The first OAuth application, if the options name none. */
const CLIENT: Client = { id: 'test-client', secret: 'test-client-secret' }
/** Nothing listens here and nothing is sent here: the code is read from the redirect's URL. */
const REDIRECT_URI = 'http://127.0.0.1:1/callback'

/**
 * Starts a sandbox without a relay, on a free port of 127.0.0.1. It does not keep the process alive. The first OAuth
 * application is `test-client`, its secret `test-client-secret`, unless `client` names another.
 * @throws RelayError `unavailable` when a given port is in use, `usage` for an unknown option; the signal's reason
 */
export async function startSandbox(options: TestSandboxOptions = {}): Promise<StartedSandbox> {
  checkNames(options, OPTIONS, { of: 'startSandbox has no option', kind: 'usage' })
  const { webhook, secret = TEST_SECRET, client = CLIENT, signal, ...rest } = options
  signal?.throwIfAborted()
  const url = typeof webhook === 'string' ? () => webhook : webhook
  const hook = url && { url, secret: new Secret(secret) }
  const sandbox = await held(() => openSandbox({ ...rest, client, webhook: hook, background: true }))
  const started = testSandboxOf(sandbox, client)
  if (signal) onAbort(signal, () => void started.stop().catch(() => {}))
  signal?.throwIfAborted()
  return started
}

/** Returns the members of a sandbox that tests use. */
export function testSandboxOf(sandbox: Sandbox, client: Client): StartedSandbox {
  const { url, state, faults } = sandbox
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => (stopped ??= held(async () => sandbox[Symbol.asyncDispose]()))
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
    token: (scope) => held(() => tokenOf(url, client, scope)),
    idle: () => held(() => sandbox.idle()),
    stop,
    [Symbol.asyncDispose]: stop,
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
