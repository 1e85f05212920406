import { silentLog } from '../../src/base/log.js'
import type { WebhookSecrets } from '../../src/base/settings.js'
import { DEFAULTS } from '../../src/base/settings.js'
import { hostCheck } from '../../src/http/host.js'
import { listen } from '../../src/http/listen.js'
import { createRouter } from '../../src/http/router.js'
import { Journal } from '../../src/journal/journal.js'
import type { Provider } from '../../src/providers/provider.js'
import { healthRoutes } from '../../src/server/routes/health.js'
import { webhookRoutes } from '../../src/server/routes/webhook.js'
import type { Database } from '../../src/store/open.js'
import { openDatabase } from '../../src/store/open.js'
import { createIntake } from '../../src/webhook/intake.js'
import { createRefusals } from '../../src/webhook/refusals.js'
import { GITHUB, SECRETS } from './delivery.js'
import { nowhere } from './journal.js'

export interface WebhookServiceOptions {
  /** Default: in memory. Closed with the service. */
  readonly database?: Database
  readonly provider?: Provider
  readonly secrets?: WebhookSecrets
  readonly maxBody?: number
}

/** The webhook and health endpoints over real HTTP, on a free port of 127.0.0.1. */
export async function startWebhookService(options: WebhookServiceOptions = {}) {
  const { provider = GITHUB, secrets = SECRETS, maxBody = DEFAULTS.maxBody } = options
  const database = options.database ?? (await openDatabase({ kind: 'memory', folder: '' }))
  const journal = new Journal(database.sql)
  const intake = createIntake({ senders: () => ({ scheme: provider.webhook, secrets }), journal, plan: nowhere })
  const refusals = createRefusals({ scheme: provider.webhook, secrets, maxBody, log: silentLog })
  const hostAllowed = hostCheck({ host: '127.0.0.1', allowed: [] })
  const app = createRouter({ hostAllowed, log: silentLog })
    .route('/', healthRoutes({ prove: () => undefined }))
    .route('/', webhookRoutes({ source: provider.name, intake, maxBody, refusals }))
  const listener = await listen(app.fetch, { host: '127.0.0.1', port: 0, log: silentLog })
  return {
    app,
    journal,
    url: listener.url,
    webhook: `${listener.url}/webhook`,
    async [Symbol.asyncDispose]() {
      await listener.close()
      await database[Symbol.asyncDispose]()
    },
  }
}
