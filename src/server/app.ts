import { silentLog } from '../base/log.js'
import { createRouter, errorResponse } from '../http/router.js'
import { actionRoutes } from './actions.js'
import { authRoutes } from './auth.js'
import { homeRoutes, INSPECT_PATH } from './home.js'
import { instanceRoutes } from './instance.js'
import type { AppParts } from './parts.js'
import { misdirectedDetail, webhookRoutes } from './webhook.js'

/** Path of the readiness check. It is served while the instance starts, too. */
export const READY_PATH = '/ready'
/** Format of a challenge: random bytes in hex or base64, at least 96 bits. */
const CHALLENGE = /^[A-Za-z0-9+/=_-]{16,256}$/

/**
 * Makes the whole HTTP service for the current sources. It does not listen: call its `fetch`, or pass that to `listen`.
 */
export function createApp(parts: AppParts) {
  const { instance, ready, inspector, metrics, command, host, payloadUrl } = parts
  const places = () => ({
    payloadUrl: payloadUrl(),
    hasInspector: inspector !== undefined,
    ...(host.name === 'sandbox' && { sandboxUrl: host.url }),
  })
  const app = createRouter({ ...parts, onUnrouted: (c, status) => misdirectedDetail(c, status, parts) })
    .route('/', homeRoutes({ places, command }))
    .route('/', webhookRoutes(parts))
    .route('/', authRoutes(parts))
    .route('/', actionRoutes(parts))
  if (instance) app.route('/', instanceRoutes({ ...parts, instance }))
  // The challenge header asks this process to prove that it is the profile's instance.
  app.get('/health', (c) => {
    const challenge = c.req.header('x-relay-challenge') ?? ''
    const proof = CHALLENGE.test(challenge) ? instance?.prove(challenge) : undefined
    return c.json({ status: 'ok' }, 200, proof === undefined ? {} : { 'X-Relay-Instance': proof })
  })
  app.get(READY_PATH, async (c) => {
    try {
      await ready({ watched: true })
      return c.json({ status: 'ready' }, 200)
    } catch (error) {
      // Load balancers poll this path, so a failure writes no line to the log.
      return errorResponse(error, silentLog)
    }
  })
  if (inspector)
    app
      .get('/inspect', (c) => c.redirect(INSPECT_PATH))
      .all(`${INSPECT_PATH}*`, async (c) => (await inspector()).fetch(c.req.raw, c.env))
  if (metrics) app.all('/metrics', (c) => metrics.fetch(c.req.raw, c.env))
  return app
}

type App = ReturnType<typeof createApp>

/** An application that can be replaced while it serves. A request is finished by the application that received it. */
export class ReplaceableApp {
  #app: App

  constructor(app: App) {
    this.#app = app
  }

  replace(app: App): void {
    this.#app = app
  }

  get routes(): App['routes'] {
    return this.#app.routes
  }

  readonly fetch: App['fetch'] = (...request) => this.#app.fetch(...request)

  readonly request: App['request'] = (...request) => this.#app.request(...request)
}
