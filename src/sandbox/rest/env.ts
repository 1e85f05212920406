import type { Context } from 'hono'
import type { HttpEnv } from '../../http/body.js'
import type { App } from '../apps/apps.js'
import type { Ci } from '../ci.js'
import type { Faults } from '../faults.js'
import type { Grant } from '../oauth/tokens.js'
import type { View } from '../resources/view.js'
import type { DeliveryLog } from '../hooks/delivery-log.js'
import type { Hooks } from '../hooks/hooks.js'
import type { Webhooks } from '../hooks/webhooks.js'

/** Environment of the routes behind the bearer check, which sets `grant` to that of the token. */
export type RestEnv = HttpEnv & { Variables: { grant: Grant } }

/** Environment of the routes for an App, which its token sets. */
export type AppEnv = HttpEnv & { Variables: { app: App } }

export interface RestParts {
  readonly view: View
  readonly faults: Faults
  readonly webhooks: Webhooks
  readonly ci: Ci
  readonly hooks: Hooks
  readonly deliveries: DeliveryLog
}

/** Resolves once the response has been sent or its connection has closed; at once for an in-process call. */
export function responseSent(c: Pick<Context<HttpEnv>, 'env'>): Promise<void> {
  const outgoing: HttpEnv['Bindings']['outgoing'] | undefined = c.env?.outgoing
  if (!outgoing || outgoing.closed) return Promise.resolve()
  return new Promise((resolve) => outgoing.once('close', resolve))
}
