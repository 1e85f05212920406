import type { RenewParts } from '../auth/renew.js'
import type { SignInParts } from '../auth/sign-in.js'
import { silentLog } from '../base/log.js'
import type { LiveRoutes } from '../dispatch/routes.js'
import type { FetchHandler } from '../http/listen.js'
import { createRouter, errorResponse, type RouterParts } from '../http/router.js'
import type { CodeHost } from '../codehost/host.js'
import type { Tokens } from '../tokens/tokens.js'
import type { Intake } from '../webhook/intake.js'
import type { Refusals } from '../webhook/refusals.js'
import type { Sources } from '../webhook/signature.js'
import { actionRoutes } from './actions.js'
import { authRoutes } from './auth.js'
import { homeRoutes, INSPECT_PATH } from './home.js'
import { type InspectorCodes, instanceRoutes } from './instance.js'
import { misdirectedDetail, webhookRoutes } from './webhook.js'

/** A part of the service that answers for itself. */
interface Mounted {
  readonly fetch: FetchHandler
}

/** Rejects with a RelayError of status 503 while no delivery can be taken. `watched`: a load balancer asks, and needs time to notice an end. */
export type ReadyCheck = (options?: { readonly watched: boolean }) => Promise<void>

export interface AppParts extends Omit<RouterParts, 'onUnrouted'> {
  readonly host: CodeHost
  readonly tokens: Tokens
  readonly signIn: SignInParts & RenewParts
  /** Address of the page that a browser is sent to after signing in. */
  readonly baseUrl: () => string
  /** Whose deliveries are taken, by name. */
  readonly sources: Sources
  readonly intake: Intake
  /** Largest accepted body, in bytes. */
  readonly maxBody: number
  readonly refusals: Refusals
  readonly routes: () => Promise<LiveRoutes>
  /** HMAC with the instance's key; undefined when this process is not the profile's instance. */
  readonly prove: (text: string) => string | undefined
  readonly ready: ReadyCheck
  /** Loads the inspector when it is first asked for. Undefined: it is off. */
  readonly inspector?: (() => Promise<Mounted & InspectorCodes>) | undefined
  /** Answers requests for the metrics. Undefined: they are off. */
  readonly metrics?: Mounted | undefined
}

/** Answered also while the instance starts. */
export const READY_PATH = '/ready'
/** Random bytes in hex or base64, at least 96 bits of them. */
const CHALLENGE = /^[A-Za-z0-9+/=_-]{16,256}$/

/** The whole HTTP service as one application. It does not listen: call its `fetch`, or pass that to `listen`. */
export function createApp(parts: AppParts) {
  const { prove, ready, inspector, metrics } = parts
  const app = createRouter({ ...parts, onUnrouted: (c, status) => misdirectedDetail(c, status, parts) })
    .route('/', homeRoutes({ hasInspector: inspector !== undefined }))
    .route('/', webhookRoutes(parts))
    .route('/', authRoutes(parts))
    .route('/', actionRoutes(parts))
    .route('/', instanceRoutes(parts))
  // The header proves, where a request asks for it, that this process is the profile's instance.
  app.get('/health', (c) => {
    const challenge = c.req.header('x-relay-challenge') ?? ''
    const proof = CHALLENGE.test(challenge) ? prove(challenge) : undefined
    return c.json({ status: 'ok' }, 200, proof === undefined ? {} : { 'X-Relay-Instance': proof })
  })
  app.get(READY_PATH, async (c) => {
    try {
      await ready({ watched: true })
      return c.json({ status: 'ready' }, 200)
    } catch (error) {
      // A load balancer asks all the time, so its requests leave no line in the log.
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
