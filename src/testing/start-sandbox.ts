import { Secret } from '../base/secret.js'
import type { Faults } from '../sandbox/faults.js'
import { type Sandbox, type SandboxOptions, startSandbox as start } from '../sandbox/sandbox.js'
import type { State } from '../sandbox/state.js'
import { type Client, grantAt } from './grant.js'
import { TEST_SECRET } from './signed-request.js'

/** Current contents. Lists are oldest first. */
type Contents = Pick<State, 'issue' | 'comments' | 'reviewComments' | 'reactions' | 'merges' | 'requests'>

/**
 * Emulated code host with the paths of GitHub Enterprise Server and the repository `octo/demo`: issues #1 and #4 (locked),
 * pull requests #2, #3 (conflicts) and #5. Everything is in memory, limited to the last 10,000 comments, 10,000 reactions
 * and 1000 requests.
 */
export interface TestSandbox extends Contents {
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
  Pick<SandboxOptions, 'lifetimes' | 'log' | 'clock' | 'port' | 'deviceFlow' | 'checkDuration'>
> {
  /** Receiver of webhooks; a function if its URL is known only later. Default: none. */
  readonly webhook?: string | (() => string)
  /** Secret that signs the webhooks. Default: {@link TEST_SECRET}. */
  readonly secret?: string
  /** The first OAuth application. Default: `test-client`, `test-client-secret`. */
  readonly client?: Client
}

const CLIENT: Client = { id: 'test-client', secret: 'test-client-secret' }

/**
 * Starts a sandbox without a relay, on a free port of 127.0.0.1. Stop it with `await using`.
 * @throws RelayError `unavailable` when a given port is in use.
 */
export async function startSandbox(options: TestSandboxOptions = {}): Promise<TestSandbox & AsyncDisposable> {
  const { webhook, secret = TEST_SECRET, client = CLIENT, ...rest } = options
  const sandbox = await start({
    ...rest,
    client,
    ...(webhook !== undefined && {
      webhook: { url: typeof webhook === 'string' ? () => webhook : webhook, secret: new Secret(secret) },
    }),
  })
  return viewOf(sandbox, client, { [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() })
}

/** Reduces a sandbox to the members for tests, and adds `more`. */
export function viewOf<More extends object>(
  sandbox: Sandbox,
  client: Client,
  more: More,
): TestSandbox & More {
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
    token: async (scope) => (await grantAt(url, client, scope)).access_token,
    idle: () => sandbox.idle(),
    ...more,
  }
}
