import { createRouter, type RouterParts } from '../http/router.js'
import type { OAuth } from '../oauth/oauth.js'
import type { Provider } from '../providers/provider.js'
import type { Tokens } from '../tokens/tokens.js'
import type { Intake } from '../webhook/intake.js'
import { actionRoutes } from './routes/actions.js'
import { authRoutes } from './routes/auth.js'
import { healthRoutes } from './routes/health.js'
import { homeRoutes } from './routes/home.js'
import { webhookRoutes } from './routes/webhook.js'

export interface AppParts extends RouterParts {
  readonly provider: Provider
  readonly intake: Intake
  readonly oauth: OAuth
  readonly tokens: Tokens
  /** Largest accepted webhook body, in bytes. */
  readonly maxBody: number
  /** The application a browser returns to after signing in. */
  readonly baseUrl: () => string
  /** Proves that this is the profile's instance; undefined when it is none. */
  readonly prove: (challenge: string) => string | undefined
}

/** The whole HTTP service as one application. It never listens: call its `fetch`, or give it to `listen`. */
export function createApp(parts: AppParts) {
  return createRouter(parts)
    .route('/', homeRoutes())
    .route('/', healthRoutes(parts))
    .route('/', webhookRoutes(parts))
    .route('/', authRoutes(parts))
    .route('/', actionRoutes(parts))
}
