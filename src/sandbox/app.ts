import type { Hono } from 'hono'
import { silentLog } from '../base/log.js'
import { systemClock } from '../base/time.js'
import { discardBody } from '../http/discard.js'
import type { HttpEnv } from '../http/env.js'
import { hostCheck } from '../http/host.js'
import { createRouter } from '../http/router.js'
import { Faults } from './faults.js'
import { GitHubError, respondWithError } from './github-error.js'
import { authorizeRoutes } from './oauth/authorize.js'
import { Codes } from './oauth/codes.js'
import { revokeRoutes } from './oauth/revoke.js'
import { tokenRoutes } from './oauth/token.js'
import { AccessTokens } from './oauth/tokens.js'
import type { SandboxOptions } from './options.js'
import { pageRoutes } from './pages/routes.js'
import { View } from './resources/view.js'
import { restRoutes } from './rest/rest.js'
import { SandboxState } from './state.js'
import { Webhooks } from './webhooks.js'

/** A sandbox application, which does not listen by itself. */
export interface SandboxApp {
  readonly app: Hono<HttpEnv>
  readonly view: View
  readonly faults: Faults
  readonly webhooks: Webhooks
}

/** Host on which every sandbox listens: no other machine can reach it. */
export const SANDBOX_HOST = '127.0.0.1'

/** Creates an emulated code host at `url`, with the paths of GitHub Enterprise Server. */
export function createSandbox(options: SandboxOptions & { url: () => string }): SandboxApp {
  const { clientId, clientSecret, url, log = silentLog, clock = systemClock } = options
  const view = new View(new SandboxState(clock), url)
  const faults = new Faults(clock)
  const webhooks = new Webhooks(options.webhook, log)
  const codes = new Codes(clock)
  const tokens = new AccessTokens(clock, options.lifetimes)

  const app = createRouter({ hostAllowed: hostCheck({ host: SANDBOX_HOST, allowed: [] }), log })
  app.onError(async (error, c) => {
    if (c.env?.incoming) await discardBody(c.env)
    return respondWithError(c, error, log)
  })
  app.notFound(() => {
    throw new GitHubError(404, 'Not Found')
  })
  app.use((c, next) => {
    view.state.record({ method: c.req.method, path: c.req.path })
    return next()
  })
  app
    .route('/', authorizeRoutes({ clientId, codes, issuer: () => `${url()}/login/oauth` }))
    .route('/', tokenRoutes({ clientId, clientSecret, codes, tokens, faults }))
    .route('/', revokeRoutes({ clientId, clientSecret, tokens }))
    .route('/api/v3', restRoutes({ view, faults, webhooks, tokens, clock }))
    .route('/', pageRoutes(view))
  return { app, view, faults, webhooks }
}
