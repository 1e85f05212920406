import { sleep } from '../base/wait.js'
import { type Log, silentLog } from '../base/log.js'
import type { Secret } from '../base/secret.js'
import { type Clock, systemClock } from '../base/time.js'
import { HOOK_ID } from '../senders/github.js'
import type { HttpEnv } from '../http/body.js'
import { listen } from '../http/listen.js'
import { hostCheck } from '../http/host-check.js'
import { createRouter } from '../http/router.js'
import type { Hono } from 'hono'
import { appPages, appRoutes, SandboxApps } from './apps.js'
import type { FaultControl } from './fault.js'
import { Faults } from './faults.js'
import { hookRoutes } from './hook-routes.js'
import { SandboxHooks } from './hooks.js'
import type { SandboxContext } from './host.js'
import { oauthRoutes } from './oauth.js'
import { sitePages } from './pages.js'
import { Payloads } from './payloads.js'
import { answerError, requireFound, GitHubError } from './protocol.js'
import { requireToken, metaRoute, restRoutes } from './rest.js'
import { type CheckSuite, type Push, SandboxState } from './state.js'
import { OAuth, type TokenLifetimes } from './tokens.js'

export interface SandboxOptions {
  /** The first OAuth application of the sandbox; registering an App adds another. */
  readonly client: { readonly id: string; readonly secret: string }
  /**
   * Receiver of webhooks, with the secret that signs them. Its URL may be known only later. Absent: no webhooks are
   * sent.
   */
  readonly webhook?: { readonly url: () => string; readonly secret: Secret } | undefined
  /** Makes access tokens expire and adds refresh tokens. Absent: they do not expire, GitHub's default. */
  readonly lifetimes?: TokenLifetimes | undefined
  /** Allows sign-in by device flow. Default: true; at GitHub an application's owner switches it on. */
  readonly deviceFlow?: boolean | undefined
  /** Milliseconds that the check of a pushed commit takes. Default: 1000. */
  readonly checkDuration?: number | undefined
  /** Default: 0, any free port. */
  readonly port?: number | undefined
  readonly clock?: Clock | undefined
  readonly log?: Log | undefined
  /** True: nothing of it keeps the process alive. Default: false. */
  readonly background?: boolean | undefined
}

/** A running sandbox. */
export interface Sandbox extends AsyncDisposable {
  /** Web address. The API is at `/api/v3`, OAuth at `/login/oauth`. */
  readonly url: string
  readonly state: SandboxState
  readonly faults: FaultControl
  /** Sends a `ping` of the sandbox's own hook and waits for pending deliveries. A failure is only logged. */
  ping(): Promise<void>
  /** Has its own hook sign with another secret from now on. */
  useSecret(secret: Secret): void
  /** Resolves when every check so far has completed, and every webhook was delivered or has failed. */
  idle(): Promise<void>
}

/** Address on which every sandbox listens. No other machine can reach it. */
const SANDBOX_HOST = '127.0.0.1'
/** Long enough to be observed in progress, short enough to wait for. */
const CHECK_MS = 1000

/**
 * Starts an emulated code host with GitHub's protocol, and the paths of GitHub Enterprise Server, on the loopback
 * interface.
 * @throws RelayError `unavailable` when the port is in use
 */
export async function openSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { client, webhook, port = 0, log = silentLog, clock = systemClock, background = false } = options
  let url = ''
  const state = new SandboxState(clock)
  const payloads = new Payloads(state, () => url)
  const faults = new Faults(clock, background)
  const oauth = new OAuth(clock, options.lifetimes)
  oauth.addClient({ ...client, deviceFlow: options.deviceFlow ?? true, isApp: false })
  const parts = { state, payloads, oauth, faults, clock, log, background }
  const hooks = new SandboxHooks(parts)
  const host: SandboxContext = { ...parts, hooks }
  // Like an App's webhook, it receives every event of every repository, and is in no repository's list.
  let ownHook =
    webhook &&
    hooks.add({
      id: HOOK_ID,
      repo: undefined,
      active: true,
      events: ['*'],
      config: { ...webhook, content_type: 'json', insecure_ssl: '0' },
    })
  const ci = startCi(host, options.checkDuration ?? CHECK_MS)
  const app = createApp(host, ci)
  const listener = await listen(app.fetch, {
    host: SANDBOX_HOST,
    port,
    log,
    portFlag: '--sandbox-port',
    background,
  })
  url = listener.url
  return {
    url,
    state,
    faults,
    async ping() {
      if (ownHook) hooks.ping(ownHook)
      await hooks.idle()
    },
    useSecret(secret) {
      ownHook &&= hooks.change(ownHook, { config: { ...ownHook.config, secret } })
    },
    async idle() {
      await ci.idle()
      await hooks.idle()
    },
    async [Symbol.asyncDispose]() {
      faults.close()
      await Promise.all([listener.close(), ci.close(), hooks.close()])
    },
  }
}

function createApp(host: SandboxContext, ci: Ci): Hono<HttpEnv> {
  const { state, log } = host
  const apps = new SandboxApps(host)
  const app = createRouter({ hostAllowed: hostCheck({ host: SANDBOX_HOST, allowed: [] }), log })
  app.onError((error, c) => answerError(c, error, log))
  app.notFound(() => {
    throw new GitHubError(404, 'Not Found')
  })
  app.use((c, next) => {
    // The code of the manifest flow is a secret in a path.
    const path = c.req.path.replace(/(?<=\/app-manifests\/)[^/]+/, '{code}')
    state.record({ method: c.req.method, path })
    return next()
  })
  const rest = restRoutes(host, (push) => ci.start(push))
  app.route('/', oauthRoutes(host))
  const api = app.basePath('/api/v3')
  api.route('/', metaRoute(host)).route('/', appRoutes(apps, host))
  api.use(requireToken(host))
  api.route('/', rest).route('/', hookRoutes(host))
  return app.route('/', appPages(apps, host)).route('/', sitePages(host))
}

type Ci = ReturnType<typeof startCi>

/**
 * Continuous integration of the sandbox: checks each pushed commit with one run, `test`. It fails when the commit's message has
 * the word `fail`, and otherwise succeeds.
 */
function startCi({ state, payloads, hooks, log, background }: SandboxContext, duration: number) {
  const stopped = new AbortController()
  const running = new Set<Promise<void>>()
  /** Resolves when every check so far has completed. */
  const idle = async (): Promise<void> => void (await Promise.all(running))

  async function run(check: CheckSuite): Promise<void> {
    const { message, repo } = check.push
    try {
      await sleep(duration, { signal: stopped.signal, ref: !background })
      const conclusion = /\bfail\b/i.test(message) ? 'failure' : 'success'
      check.result = { conclusion, completedAt: state.now() }
      hooks.publish('check_run', repo, () => payloads.checkRunEvent(check))
      hooks.publish('check_suite', repo, () => payloads.checkSuiteEvent(check))
    } catch (error) {
      if (!stopped.signal.aborted) log.error('The sandbox failed to check a commit', error)
    }
  }

  return {
    /** Starts the check of a commit, and sends its events when it has completed. */
    start(push: Push): void {
      const check = { suiteId: state.newId(), runId: state.newId(), push, result: null }
      requireFound(state.commit(push.repo, push.sha)).check = check
      const ended = run(check).finally(() => running.delete(ended))
      running.add(ended)
    },
    idle,
    /** Abandons running checks. */
    close(): Promise<void> {
      stopped.abort()
      return idle()
    },
  }
}
