import { Hono } from 'hono'
import type { SignInParts } from '../auth/sign-in.js'
import { silentLog } from '../base/log.js'
import type { HttpEnv } from '../http/body.js'
import type { FetchHandler } from '../http/listen.js'
import { createRouter, errorResponse, type RouterParts } from '../http/router.js'
import type { CodeHost } from '../codehost/host.js'
import type { Tokens } from '../tokens/tokens.js'
import { actionRoutes } from './actions.js'
import { authRoutes } from './auth.js'
import { homeRoutes, INSPECT_PATH } from './home.js'
import { type InspectorCodes, instanceRoutes, type InstanceParts } from './instance.js'
import { misdirectedDetail, webhookRoutes, type WebhookParts } from './webhook.js'

/** A part of the service that answers for itself. */
interface Mounted {
  readonly fetch: FetchHandler
}

/**
 * Rejects with a RelayError that has status 503 while the instance cannot take deliveries. Cheap, and bounded in time. `watched`: a
 * load balancer asks, which needs time to notice when the instance stops.
 */
export type ReadyCheck = (options?: { readonly watched: boolean }) => Promise<void>

export interface AppParts extends Omit<RouterParts, 'onUnrouted'>, WebhookParts, InstanceParts {
  readonly host: CodeHost
  readonly refusals: WebhookParts['refusals']
  readonly signIn: SignInParts
  readonly tokens: Tokens
  /** Address of the page that a browser is sent to after signing in. */
  readonly baseUrl: () => string
  readonly ready: ReadyCheck
  /** Loads the inspector when it is first asked for. Undefined: it is off. */
  readonly inspector?: (() => Promise<Mounted & InspectorCodes>) | undefined
  /** Answers requests for the metrics. Undefined: they are off. */
  readonly metrics?: Mounted | undefined
}

/** The whole HTTP service as one application. It does not listen: call its `fetch`, or pass that to `listen`. */
export function createApp(parts: AppParts) {
  return createRouter({ ...parts, onUnrouted: (c, status) => misdirectedDetail(c, status, parts) })
    .route('/', homeRoutes({ hasInspector: parts.inspector !== undefined }))
    .route('/', healthRoutes(parts))
    .route('/', readyRoutes(parts))
    .route('/', webhookRoutes(parts))
    .route('/', authRoutes(parts))
    .route('/', actionRoutes(parts))
    .route('/', instanceRoutes(parts))
    .route('/', mountedRoutes(parts))
}

/** Random bytes in hex or base64, at least 96 bits of them. */
const CHALLENGE = /^[A-Za-z0-9+/=_-]{16,256}$/

/**
 * GET /health: `{"status":"ok"}`. A request with `X-Relay-Challenge` also gets the proof that this process is the profile's
 * instance, in `X-Relay-Instance`.
 */
function healthRoutes({ prove }: Pick<AppParts, 'prove'>) {
  return new Hono<HttpEnv>().get('/health', (c) => {
    const challenge = c.req.header('x-relay-challenge')
    const proof = challenge !== undefined && CHALLENGE.test(challenge) ? prove(challenge) : undefined
    return c.json({ status: 'ok' }, 200, proof === undefined ? {} : { 'X-Relay-Instance': proof })
  })
}

/** Answered also while the instance starts. */
export const READY_PATH = '/ready'

/**
 * GET /ready: `{"status":"ready"}`, or 503 while deliveries cannot be taken: for a load balancer. It asks all the time, so its
 * requests leave no line in the log.
 */
function readyRoutes({ ready }: Pick<AppParts, 'ready'>) {
  return new Hono<HttpEnv>().get(READY_PATH, async (c) => {
    try {
      await ready({ watched: true })
      return c.json({ status: 'ready' }, 200)
    } catch (error) {
      return errorResponse(error, silentLog)
    }
  })
}

/** `/inspect/…` and `/metrics`; 404, as for an unknown path, while they are off. */
function mountedRoutes({ inspector, metrics }: Pick<AppParts, 'inspector' | 'metrics'>) {
  const app = new Hono<HttpEnv>()
  if (inspector)
    app
      .get('/inspect', (c) => c.redirect(INSPECT_PATH))
      .all(`${INSPECT_PATH}*`, async (c) => (await inspector()).fetch(c.req.raw, c.env))
  if (metrics) app.all('/metrics', (c) => metrics.fetch(c.req.raw, c.env))
  return app
}
