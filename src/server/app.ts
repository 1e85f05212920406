import type { Context } from 'hono'
import type { HttpEnv } from '../http/body.js'
import { createRouter, type RouterParts } from '../http/router.js'
import type { OAuth } from '../oauth/oauth.js'
import type { Provider } from '../providers/provider.js'
import type { Tokens } from '../tokens/tokens.js'
import type { Intake } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'
import { actionRoutes } from './routes/actions.js'
import { authRoutes } from './routes/auth.js'
import { healthRoutes } from './routes/health.js'
import { homeRoutes } from './routes/home.js'
import { inspectRoutes, type InspectRouteParts } from './routes/inspect.js'
import { metricsRoutes, type MetricsRouteParts } from './routes/metrics.js'
import { type ReadyParts, readyRoutes } from './routes/ready.js'
import { refusedRoutes } from './routes/refused.js'
import { renewRoutes, type RenewParts } from './routes/renew.js'
import { routesRoutes, type RoutesParts } from './routes/routes.js'
import { headersOf, isMisdirected, webhookRoutes } from './routes/webhook.js'

export interface AppParts
  extends RouterParts, RenewParts, RoutesParts, InspectRouteParts, MetricsRouteParts, ReadyParts {
  readonly provider: Provider
  readonly intake: Intake
  readonly refusals: Refusals
  readonly oauth: OAuth
  readonly tokens: Tokens
  /** Largest accepted webhook body, in bytes. */
  readonly maxBody: number
  /** Address of the page that a browser is sent to after signing in. */
  readonly baseUrl: () => string
}

/** The whole HTTP service as one application. It does not listen: call its `fetch`, or pass that to `listen`. */
export function createApp(parts: AppParts) {
  const onUnrouted = (c: Context<HttpEnv>, status: number): string | undefined => {
    const headers = headersOf(c)
    const misdirected = isMisdirected(c.req.method, headers, parts.provider.webhook)
    return misdirected ? parts.refusals.misdirected(headers, status) : undefined
  }
  return createRouter({ ...parts, onUnrouted })
    .route('/', homeRoutes({ hasInspector: parts.inspector !== undefined }))
    .route('/', healthRoutes(parts))
    .route('/', readyRoutes(parts))
    .route('/', webhookRoutes({ ...parts, source: parts.provider.name }))
    .route('/', authRoutes(parts))
    .route('/', actionRoutes(parts))
    .route('/', renewRoutes(parts))
    .route('/', refusedRoutes(parts))
    .route('/', routesRoutes(parts))
    .route('/', inspectRoutes(parts))
    .route('/', metricsRoutes(parts))
}
