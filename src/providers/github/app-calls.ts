// The calls to GitHub about Apps; loaded when the first is made.
import { z } from 'zod'
import { Secret } from '../../base/secret.js'
import { systemClock } from '../../base/time.js'
import { repoPath } from '../common-calls.js'
import { RelayError } from '../../base/errors.js'
import { isUnknownApp } from '../errors.js'
import type { DeliveryPage } from '../hooks.js'
import { type Api, send, type UserApi } from '../http.js'
import type { RepoTarget } from '../provider.js'
import type { AppDescription, AppHook, AppIdentity, RegisteredApp } from '../registration.js'
import type { Cancellable } from '../../base/abort.js'
import { appToken } from './app-token.js'
import { pageOfLog } from './hook-calls.js'

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

/** The API as an App calls it. Its token is made for each call, since it is valid for minutes. */
function asApp(api: Api, app: AppIdentity, { signal }: Cancellable = {}): UserApi {
  return { ...api, token: appToken(app, systemClock()), signal }
}

const described = z
  .object({ html_url: z.url({ protocol: /^https?$/ }), installations_count: z.int().optional() })
  .transform(({ html_url, installations_count }): AppDescription => ({
    installUrl: `${html_url}/installations/new`,
    installations: installations_count,
  }))

/** GET /app (https://docs.github.com/rest/apps/apps#get-the-authenticated-app). */
export async function describeApp(
  api: Api,
  app: AppIdentity,
  options?: Cancellable,
): Promise<AppDescription> {
  return (await send(asApp(api, app, options), { method: 'GET', path: ['app'], answer: described })).value
}

/** GET /repos/{owner}/{repo}/installation (https://docs.github.com/rest/apps/apps#get-a-repository-installation-for-the-authenticated-app). */
export async function isInstalled(
  api: Api,
  app: AppIdentity,
  repo: RepoTarget,
  options?: Cancellable,
): Promise<boolean> {
  try {
    await send(asApp(api, app, options), {
      method: 'GET',
      path: [...repoPath(repo), 'installation'],
      answer: z.unknown(),
    })
    return true
  } catch (error) {
    if (error instanceof RelayError && error.kind === 'not_found' && !isUnknownApp(error)) return false
    throw error
  }
}

const CONFIG = ['app', 'hook', 'config'] as const
const DELIVERIES = ['app', 'hook', 'deliveries'] as const

const config = z
  .object({
    url: z.string().default(''),
    content_type: z.string().default('form'),
    secret: z.string().optional(),
  })
  .transform(({ url, content_type: contentType, secret: hidden }): AppHook => ({
    url,
    contentType,
    hasSecret: hidden !== undefined,
  }))

/** GET /app/hook/config (https://docs.github.com/rest/apps/webhooks#get-a-webhook-configuration-for-an-app). */
export async function getHook(api: Api, app: AppIdentity, options?: Cancellable): Promise<AppHook> {
  return (await send(asApp(api, app, options), { method: 'GET', path: CONFIG, answer: config })).value
}

/** PATCH /app/hook/config (https://docs.github.com/rest/apps/webhooks#update-a-webhook-configuration-for-an-app). */
export async function changeHook(
  api: Api,
  app: AppIdentity,
  { url, secret: hookSecret }: { readonly url?: string | undefined; readonly secret: Secret },
  options?: Cancellable,
): Promise<void> {
  const body = { ...(url !== undefined && { url }), content_type: 'json', secret: hookSecret.reveal() }
  await send(asApp(api, app, options), { method: 'PATCH', path: CONFIG, body, answer: z.unknown() })
}

/** GET /app/hook/deliveries: one page (https://docs.github.com/rest/apps/webhooks#list-deliveries-for-an-app-webhook). */
export function listAppDeliveries(
  api: Api,
  app: AppIdentity,
  cursor: string | undefined,
  options?: Cancellable,
): Promise<DeliveryPage> {
  return pageOfLog(asApp(api, app, options), DELIVERIES, cursor)
}

/** POST /app/hook/deliveries/{delivery_id}/attempts: 202 (https://docs.github.com/rest/apps/webhooks#redeliver-a-delivery-for-an-app-webhook). */
export async function redeliverForApp(
  api: Api,
  app: AppIdentity,
  deliveryId: string,
  options?: Cancellable,
): Promise<void> {
  await send(asApp(api, app, options), {
    method: 'POST',
    path: [...DELIVERIES, deliveryId, 'attempts'],
    answer: z.unknown(),
  })
}
