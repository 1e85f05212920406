import type { Hono } from 'hono'
import { silentLog } from '../base/log.js'
import { systemClock } from '../base/time.js'
import { discardBody, type HttpEnv } from '../http/body.js'
import { hostCheck, createRouter } from '../http/router.js'
import { HOOK_ID } from '../codehost/github/webhook.js'
import { type App, Apps } from './apps/apps.js'
import { appPages } from './apps/routes.js'
import { Ci } from './ci.js'
import { Faults } from './faults.js'
import { GitHubError, respondWithError } from './github-error.js'
import { DeliveryLog } from './hooks/delivery-log.js'
import type { Hook } from './hooks/hook.js'
import { Hooks } from './hooks/hooks.js'
import { Webhooks } from './hooks/webhooks.js'
import { authorizeRoutes } from './oauth/authorize.js'
import { Clients } from './oauth/clients.js'
import { Codes } from './oauth/codes.js'
import { injectFault } from './inject-fault.js'
import { deviceRoutes } from './oauth/device.js'
import { DeviceCodes } from './oauth/device-codes.js'
import { personalTokenRoutes } from './oauth/personal.js'
import { revokeRoutes } from './oauth/revoke.js'
import { tokenRoutes } from './oauth/token.js'
import { AccessTokens } from './oauth/tokens.js'
import type { SandboxOptions } from './options.js'
import { pageRoutes } from './pages/routes.js'
import { installationEvent } from './payloads.js'
import { View } from './resources/view.js'
import { restRoutes } from './rest/rest.js'
import { SandboxState } from './state.js'

/** A sandbox application, which does not listen by itself. */
export interface SandboxApp {
  readonly app: Hono<HttpEnv>
  readonly view: View
  readonly faults: Faults
  readonly webhooks: Webhooks
  readonly ci: Ci
  /** The sandbox's own hook, if it has a receiver. */
  readonly ownHook: Hook | undefined
}

/** Host on which every sandbox listens: no other machine can reach it. */
export const SANDBOX_HOST = '127.0.0.1'

/** Long enough to be seen in progress, short enough to wait for. */
const CHECK_MS = 1000

/** Creates an emulated code host at `url`, with the paths of GitHub Enterprise Server. */
export function createSandbox(options: SandboxOptions & { url: () => string }): SandboxApp {
  const { url, log = silentLog, clock = systemClock, deviceFlow = true } = options
  const view = new View(new SandboxState(clock), url)
  const faults = new Faults(clock)
  const clients = new Clients()
  clients.add({ id: options.clientId, secret: options.clientSecret, deviceFlow })
  const hooks = new Hooks(clock)
  const deliveries = new DeliveryLog(clock)
  const webhooks = new Webhooks({ hooks, deliveries, host: () => new URL(url()).hostname, log, clock })
  const ci = new Ci({ view, webhooks, log, duration: options.checkDuration ?? CHECK_MS })
  const apps = new Apps({ clock, clients, hooks })
  const ownHook = options.webhook && addOwnHook(hooks, options.webhook)
  const codes = new Codes(clock)
  const devices = new DeviceCodes(clock)
  const tokens = new AccessTokens(clock, options.lifetimes)

  const app = createRouter({ hostAllowed: hostCheck({ host: SANDBOX_HOST, allowed: [] }), log })
  app.onError(async (error, c) => {
    await discardBody(c.env)
    return respondWithError(c, error, log)
  })
  app.notFound(() => {
    throw new GitHubError(404, 'Not Found')
  })
  app.use((c, next) => {
    // The code of the manifest flow is a secret in a path.
    const path = c.req.path.replace(/(?<=\/app-manifests\/)[^/]+/, '{code}')
    view.state.record({ method: c.req.method, path })
    return next()
  })
  app
    .route('/', authorizeRoutes({ clients, codes, issuer: () => `${url()}/login/oauth` }))
    .route('/', tokenRoutes({ clients, codes, devices, tokens, faults }))
    .use('/login/device/code', injectFault(faults, 'device'))
    .route('/', deviceRoutes({ clients, devices, url, clock }))
    .route('/', personalTokenRoutes(tokens, clock))
    .route('/', revokeRoutes({ clients, tokens }))
    .route('/api/v3', restRoutes({ view, faults, webhooks, hooks, deliveries, ci, apps, tokens, clock }))
    .route('/', appPages(apps, announce))
    .route('/', pageRoutes(view))
  return { app, view, faults, webhooks, ci, ownHook }

  function announce(installed: App): void {
    const hook = apps.hookOf(installed)
    if (hook?.active) webhooks.send(hook, 'installation', installationEvent(view, installed))
  }
}

/** Like an App's webhook, it gets every event of every repository, and is in no repository's list. */
function addOwnHook(hooks: Hooks, { url, secret }: NonNullable<SandboxOptions['webhook']>): Hook {
  const config = { url, contentType: 'json', insecureSsl: '0', secret } as const
  return hooks.add({ id: HOOK_ID, repo: undefined, active: true, events: ['*'], config })
}
