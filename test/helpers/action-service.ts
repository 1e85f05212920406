import { silentLog } from '../../src/base/log.js'
import { hostCheck } from '../../src/http/host.js'
import { listen, type Listener } from '../../src/http/listen.js'
import { createRouter, type RouterParts } from '../../src/http/router.js'
import { createProvider } from '../../src/providers/open.js'
import { type ActionParts, actionRoutes } from '../../src/server/routes/actions.js'
import { openDatabase } from '../../src/store/open.js'
import { startSandbox, type TestSandbox } from '../../src/testing/index.js'
import { createTokens, type Tokens } from '../../src/tokens/tokens.js'

/** Milliseconds; short, for the tests with a slow provider. */
const TIME_LIMIT = 500
export const DAY = 86_400_000

/** The sandbox's repository, and a comment there. */
export const DEMO = { owner: 'octo', repo: 'demo' }
export const HELLO = { ...DEMO, issueNumber: 1, body: 'hello' }

export interface ActionAnswer {
  readonly status: number
  readonly body: unknown
  readonly headers: Headers
}

/** The three actions over HTTP, with a sandbox in which `token` belongs to the user `mona`. */
export interface ActionService extends AsyncDisposable {
  readonly sandbox: TestSandbox
  readonly tokens: Tokens
  readonly token: string
  readonly app: ReturnType<typeof serviceOf>
  readonly listener: Listener
  /** Sends a JSON request with the token, unless `headers` say otherwise. */
  send(path: string, body: unknown, headers?: Record<string, string>, signal?: AbortSignal): Promise<Response>
  /** Sends, and reads the answer, which must be JSON without the token. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<ActionAnswer>
  /** The same, reduced to status and body. */
  ask(path: string, body: unknown, headers?: Record<string, string>): Promise<[status: number, body: unknown]>
  /** The number of requests with this method that the sandbox got. */
  requests(method: string): number
}

export async function startActionService(): Promise<ActionService> {
  const sandbox = await startSandbox()
  const tokens = createTokens((await openDatabase({ kind: 'memory', folder: '' })).store)
  const parts = partsOf(sandbox.url, tokens)
  const app = serviceOf(parts)
  const listener = await listen(app.fetch, { host: '127.0.0.1', port: 0, log: silentLog })
  const token = await sandbox.token()
  await tokens.save('mona', { accessToken: token, expiresAt: Date.now() + DAY, origin: sandbox.url })
  const send: ActionService['send'] = (path, body, headers, signal) =>
    fetch(`${listener.url}/api/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      signal: signal ?? null,
    })
  const post: ActionService['post'] = async (path, body, headers) => {
    const response = await send(path, body, headers)
    const text = await response.text()
    if (text.includes(token)) throw new Error('the answer holds the token')
    if (response.headers.get('content-type') !== 'application/json') throw new Error('the answer is no JSON')
    return { status: response.status, body: JSON.parse(text), headers: response.headers }
  }
  return {
    sandbox,
    tokens,
    token,
    app,
    listener,
    send,
    post,
    async ask(path, body, headers) {
      const answer = await post(path, body, headers)
      return [answer.status, answer.body]
    },
    requests: (method) => sandbox.requests.filter((request) => request.method === method).length,
    async [Symbol.asyncDispose]() {
      await listener.close()
      await sandbox[Symbol.asyncDispose]()
    },
  }
}

type ServiceParts = ActionParts & RouterParts

function partsOf(url: string, tokens: Tokens): ServiceParts {
  const provider = createProvider({ name: 'sandbox', url, timeLimit: TIME_LIMIT })
  return { provider, tokens, hostAllowed: hostCheck({ host: '127.0.0.1', allowed: [] }), log: silentLog }
}

function serviceOf(parts: ServiceParts) {
  return createRouter(parts).route('/', actionRoutes(parts))
}
