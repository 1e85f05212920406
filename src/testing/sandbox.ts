import { RelayError } from '../base/errors.js'
import { StopGate } from '../base/stop-gate.js'
import { parseUrl } from '../base/address.js'
import {
  abortSignal,
  anyObject,
  address,
  callback,
  type ValueCheck,
  checkArgument,
  checkMembers,
  type Checks,
  filledText,
  flag,
  isText,
  logger,
  members,
  oneOf,
  optional,
  optionWords,
  text,
  timerMs,
  wholeNumber,
} from '../base/checks.js'
import { inOwnWords } from '../base/own-words.js'
import { Secret } from '../base/secret.js'
import { onAbort } from '../base/wait.js'
import { isObject } from '../json/parse.js'
import { readResponseText, sendOnce } from '../net/client.js'
import { type Fault, type FaultControl, OPERATIONS } from '../sandbox/fault.js'
import { PRESETS } from '../sandbox/faults.js'
import { type Sandbox, type SandboxOptions, openSandbox } from '../sandbox/sandbox.js'
import { port } from '../senders/check-settings.js'
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

const seconds = wholeNumber(0, Number.MAX_SAFE_INTEGER, 'of seconds')
const OPTIONS: Checks<TestSandboxOptions> = {
  webhook: optional((value) => (callback(value) === undefined ? undefined : address(value))),
  secret: optional(filledText),
  signal: optional(abortSignal),
  client: optional(members({ id: filledText, secret: filledText })),
  lifetimes: optional(members({ access: seconds, refresh: seconds })),
  log: optional(logger),
  clock: optional(callback),
  port: optional(port),
  deviceFlow: optional(flag),
  checkDuration: optional(timerMs),
}
const STATUS = wholeNumber(200, 599)
const FAULTS: Readonly<Record<Fault['kind'], Readonly<Record<string, ValueCheck>>>> = {
  answer: { status: STATUS, headers: optional(anyObject), body: text },
  slow: { ms: timerMs },
  late: { ms: timerMs },
  reset: {},
  'reset-after': {},
}

/** The first OAuth application, if the options name none. */
const CLIENT: Client = { id: 'test-client', secret: 'test-client-secret' }
/** Nothing listens here and nothing is sent here: the code is read from the redirect's URL. */
const REDIRECT_URI = 'http://127.0.0.1:1/callback'

/**
 * Starts a sandbox without a relay, on a free port of 127.0.0.1. It does not keep the process alive. The first OAuth
 * application is `test-client`, its secret `test-client-secret`, unless `client` names another.
 * @throws RelayError `unavailable` when a given port is in use, `usage` for an invalid option; the signal's reason
 */
export function startSandbox(options: TestSandboxOptions = {}): Promise<StartedSandbox> {
  return held(() => start(options))
}

async function start(options: TestSandboxOptions): Promise<StartedSandbox> {
  checkMembers(options, OPTIONS, optionWords('startSandbox'))
  const { webhook, secret = TEST_SECRET, client = CLIENT, signal, ...rest } = options
  signal?.throwIfAborted()
  const url = typeof webhook === 'string' ? () => webhook : webhook
  const hook = url && { url, secret: new Secret(secret) }
  // Each flag in its errors is about where it listens.
  const sandbox = await inOwnWords(
    () => openSandbox({ ...rest, client, webhook: hook, background: true }),
    () => 'the option port',
  )
  const gate = new StopGate('The sandbox was stopped: startSandbox starts another one', async () =>
    sandbox[Symbol.asyncDispose](),
  )
  if (signal) onAbort(signal, () => void gate.stop().catch(() => {}))
  signal?.throwIfAborted()
  const stop = (): Promise<void> => held(() => gate.stop())
  return Object.assign(testSandboxOf(sandbox, client, gate), { stop, [Symbol.asyncDispose]: stop })
}

/** Returns the members of a sandbox that tests use. */
export function testSandboxOf(sandbox: Sandbox, client: Client, gate: StopGate): TestSandbox {
  const { url, state, faults } = sandbox
  return {
    url,
    faults: checkedFaults(faults),
    reviewComments: state.reviewComments,
    issue(repo, number) {
      checkArgument('issue: the repository', repo, text)
      checkArgument('issue: the number', number, wholeNumber(1))
      return state.issue(repo, number)
    },
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
    token: (scope) =>
      held(() =>
        gate.run(async () => {
          checkArgument('token: the scope', scope, optional(text))
          return sandboxToken(url, client, scope)
        }),
      ),
    idle: () => held(() => gate.run(() => sandbox.idle())),
  }
}

/** Refuses an operation or a fault that does not exist: it would never happen. */
function checkedFaults(faults: FaultControl): FaultControl {
  const check = (call: string, operation: unknown, fault: unknown): void => {
    checkArgument(`${call}: the operation`, operation, oneOf(OPERATIONS))
    checkArgument(`${call}: the fault`, fault, checkFault)
  }
  return {
    next(operation, fault) {
      check('faults.next', operation, fault)
      faults.next(operation, fault)
    },
    always(operation, fault) {
      check('faults.always', operation, fault)
      faults.always(operation, fault)
    },
    clear: () => faults.clear(),
  }
}

function checkFault(value: unknown): string | undefined {
  const kinds: Readonly<Record<string, Readonly<Record<string, ValueCheck>>>> = FAULTS
  if (isText(value) || value === undefined) return oneOf([...PRESETS.keys()])(value)
  if (!isObject(value)) return ` must be one of ${[...PRESETS.keys()].join(', ')}, or an object`
  const { kind } = value
  const wrong = oneOf(Object.keys(kinds))(kind)
  if (wrong !== undefined) return `.kind${wrong}`
  return members({ kind: text, ...(isText(kind) && kinds[kind]) })(value)
}

/**
 * Gets an access token from a sandbox in the way of a browser and an application: consent page, form, token endpoint.
 * @throws RelayError `unauthenticated` when the sandbox gives none.
 */
export async function sandboxToken(url: string, { id, secret }: Client, scope = 'repo'): Promise<string> {
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
