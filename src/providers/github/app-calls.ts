// The calls to GitHub about Apps; loaded when the first is made.
import { z } from 'zod'
import { Secret } from '../../base/secret.js'
import { systemClock } from '../../base/time.js'
import { type Api, send } from '../http.js'
import type { AppIdentity, RegisteredApp } from '../registration.js'
import type { Cancellable } from '../../base/abort.js'
import { appToken } from './app-token.js'

const secret = z.string().min(1)

const converted = z
  .object({
    id: z.int(),
    slug: secret,
    html_url: z.url({ protocol: /^https?$/ }),
    client_id: secret,
    client_secret: secret,
    webhook_secret: secret.nullable(),
    pem: secret,
  })
  .transform((app): RegisteredApp => ({
    app: { id: app.id, slug: app.slug, privateKey: new Secret(app.pem) },
    client: { id: app.client_id, secret: new Secret(app.client_secret) },
    webhookSecret: app.webhook_secret === null ? undefined : new Secret(app.webhook_secret),
    installUrl: `${app.html_url}/installations/new`,
  }))

/** POST /app-manifests/{code}/conversions (https://docs.github.com/rest/apps/apps#create-a-github-app-from-a-manifest). */
export async function convertManifest(
  api: Api,
  code: string,
  { signal }: Cancellable = {},
): Promise<RegisteredApp> {
  const path = ['app-manifests', code, 'conversions']
  const call = { method: 'POST', path, body: {}, anonymous: true, answer: converted } as const
  return (await send({ ...api, token: '', signal }, call)).value
}

/** PATCH /app/hook/config (https://docs.github.com/rest/apps/webhooks#update-a-webhook-configuration-for-an-app). */
export async function setHookSecret(
  api: Api,
  app: AppIdentity,
  hookSecret: Secret,
  { signal }: Cancellable = {},
): Promise<void> {
  const body = { secret: hookSecret.reveal(), content_type: 'json' }
  const token = appToken(app, systemClock())
  const call = { method: 'PATCH', path: ['app', 'hook', 'config'], body, answer: z.unknown() } as const
  await send({ ...api, token, signal }, call)
}
