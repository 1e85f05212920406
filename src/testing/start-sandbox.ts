import { Secret } from '../base/secret.js'
import type { Faults } from '../sandbox/faults.js'
import type { SandboxOptions } from '../sandbox/options.js'
import { type Sandbox, startSandbox as start } from '../sandbox/start.js'
import type { SandboxState } from '../sandbox/state.js'
import { type Client, grantAt } from './grant.js'
import { TEST_SECRET } from './test-secret.js'

/** What it holds, read as it is at that moment; lists begin with the oldest. */
type Held = Pick<SandboxState, 'issue' | 'comments' | 'reviewComments' | 'reactions' | 'merges' | 'requests'>

/**
 * An emulated code host in the layout of GitHub Enterprise Server, with the repository `octo/demo`: issues #1 and #4,
 * which is locked, and pull requests #2, #3, which conflicts, and #5. All is in memory: the last 10,000 comments and as
 * many reactions, and the last 1000 requests.
 */
export interface TestSandbox extends Held {
  /** Its web address; the API is at `/api/v3`, OAuth at `/login/oauth`. */
  readonly url: string
  /** Makes its answers fail: `sandbox.faults.next('comment', '502')`. */
  readonly faults: Pick<Faults, 'next' | 'always' | 'clear'>
  /** An access token for its API, of the user `octo`, by way of the consent page. `scope` is by default `repo`. */
  token(scope?: string): Promise<string>
  /** Resolves when every webhook for what has happened was delivered, or has failed. */
  idle(): Promise<void>
}

export interface TestSandboxOptions extends Partial<
  Pick<SandboxOptions, 'lifetimes' | 'log' | 'clock' | 'port'>
> {
  /** Where it sends webhooks for what happens in it; a function where that is known only later. Default: nowhere. */
  readonly webhook?: string | (() => string)
  /** What the webhooks are signed with. Default: {@link TEST_SECRET}. */
  readonly secret?: string
  /** The one OAuth application it knows. Default: `test-client`, `test-client-secret`. */
  readonly client?: Client
}

const CLIENT: Client = { id: 'test-client', secret: 'test-client-secret' }

/**
 * Starts a sandbox alone, on a free port of 127.0.0.1; end it with `await using`.
 * @throws RelayError `unavailable` when a given port is in use.
 */
export async function startSandbox(options: TestSandboxOptions = {}): Promise<TestSandbox & AsyncDisposable> {
  const { webhook, secret = TEST_SECRET, client = CLIENT, ...rest } = options
  const sandbox = await start({
    ...rest,
    clientId: client.id,
    clientSecret: new Secret(client.secret),
    ...(webhook !== undefined && {
      webhook: { url: typeof webhook === 'string' ? () => webhook : webhook, secret: new Secret(secret) },
    }),
  })
  return viewOf(sandbox, client, { [Symbol.asyncDispose]: () => sandbox.close() })
}

/** What a test needs of a sandbox, and `more`. */
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
