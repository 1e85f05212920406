import { createPrivateKey, sign } from 'node:crypto'
import { z } from 'zod/mini'
import { RelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import { systemClock } from '../../base/time.js'
import { webAddressSchema } from '../github-like.js'
import type * as host from '../host.js'
import { isNotFound, type Refusal } from '../refusal.js'
import { type Api, apiPath, RestClient } from '../rest.js'
import { deliveryLog } from './hooks.js'

/** Smallest set of permissions for comment, merge and react, hooks, and reading checks and statuses. */
const PERMISSIONS = {
  issues: 'write',
  pull_requests: 'write',
  contents: 'write',
  repository_hooks: 'write',
  checks: 'read',
  statuses: 'read',
} as const

/** Events about issues, pull requests and branches that an App with these permissions can receive. */
const EVENTS = [
  'check_run',
  'check_suite',
  'create',
  'delete',
  'issue_comment',
  'issues',
  'pull_request',
  'pull_request_review',
  'pull_request_review_comment',
  'push',
  'release',
  'status',
] as const

/** https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest */
export function githubApps(api: Api, web: string): host.AppsApi {
  return {
    page: (organization) =>
      organization === undefined
        ? `${web}/settings/apps/new`
        : `${web}/organizations/${encodeURIComponent(organization)}/settings/apps/new`,
    manifest: ({ name, redirectUrl, callbackUrl, hook }) =>
      JSON.stringify({
        name,
        // Homepage, which a manifest must have.
        url: new URL(callbackUrl).origin,
        description: 'Receives webhooks and acts for its users, with relay',
        redirect_url: redirectUrl,
        callback_urls: [callbackUrl],
        public: false,
        default_permissions: PERMISSIONS,
        ...(hook && { hook_attributes: hook, default_events: EVENTS }),
      }),
    /** https://docs.github.com/rest/apps/apps#create-a-github-app-from-a-manifest */
    async convert(code) {
      const call = { body: {}, answer: converted }
      const rest = new RestClient(api, undefined)
      return (await rest.call('POST', apiPath`/app-manifests/${code}/conversions`, call)).value
    },
    as(app, options) {
      // Created for each call, since it is valid for minutes.
      const setup = options.command('setup')
      const token = async (): Promise<string> => appToken(app, systemClock(), setup)
      const explain = (refusal: Refusal): RelayError | undefined =>
        explained(refusal, { ...app, web, ...options })
      return asApp(new RestClient({ ...api, explain }, { token }, options))
    },
  }
}

const required = z.string().check(z.minLength(1))

const converted = z.pipe(
  z.object({
    id: z.int(),
    slug: required,
    html_url: webAddressSchema,
    client_id: required,
    client_secret: required,
    webhook_secret: z.nullable(required),
    pem: required,
  }),
  z.transform((app): host.RegisteredApp => ({
    app: { id: app.id, slug: app.slug, privateKey: new Secret(app.pem) },
    client: { id: app.client_id, secret: new Secret(app.client_secret) },
    webhookSecret: app.webhook_secret === null ? undefined : new Secret(app.webhook_secret),
    installUrl: `${app.html_url}/installations/new`,
  })),
)

const described = z.pipe(
  z.object({ html_url: webAddressSchema, installations_count: z.optional(z.int()) }),
  z.transform(({ html_url, installations_count }) => ({
    installUrl: `${html_url}/installations/new`,
    installations: installations_count,
  })),
)

const config = z.pipe(
  z.object({
    url: z._default(z.string(), ''),
    content_type: z._default(z.string(), 'form'),
    secret: z.optional(z.string()),
  }),
  z.transform(({ url, content_type: contentType, secret }) => ({
    url,
    contentType,
    hasSecret: secret !== undefined,
  })),
)

/** https://docs.github.com/rest/apps/apps and https://docs.github.com/rest/apps/webhooks */
function asApp(rest: RestClient): host.AppAccount {
  return {
    log: deliveryLog(rest, '/app/hook/deliveries'),
    async describe() {
      return (await rest.call('GET', '/app', { answer: described })).value
    },
    async isInstalled({ owner, repo }) {
      try {
        await rest.call('GET', apiPath`/repos/${owner}/${repo}/installation`)
        return true
      } catch (error) {
        if (isNotFound(error)) return false
        throw error
      }
    },
    async hook() {
      return (await rest.call('GET', '/app/hook/config', { answer: config })).value
    },
    async changeHook({ url, secret }) {
      const body = { url, content_type: 'json', secret: secret.reveal() }
      await rest.call('PATCH', '/app/hook/config', { body })
    },
  }
}

/** Converts a refusal to an error that explains what it means for an App, with advice. */
function explained(
  cause: Refusal,
  { slug, web, command }: Pick<host.AppIdentity, 'slug'> & host.AppOptions & { readonly web: string },
): RelayError | undefined {
  const { upstreamMessage: message, kind } = cause
  // A 404 with another message is about the requested object.
  if (message === 'Integration not found')
    return new RelayError(
      'gone',
      `${web} has no App ${slug} any more: it was deleted there. Register another with ${command('setup')}`,
      { cause },
    )
  if (kind !== 'invalid_token') return undefined
  // GitHub names the time claim that it rejects.
  const why = /'(?:exp|iat)'/.test(message)
    ? `${web} refused the token of the App ${slug}: ${message}. Set this machine's clock; ${command('doctor')} compares it`
    : `${web} refused the key of the App ${slug}: it was removed there. Delete the App there, and register another with ${command('setup')}`
  return new RelayError('forbidden', why, { cause })
}

/**
 * Seconds by which the token is backdated, since clocks differ, and seconds of its validity. GitHub allows 600 in all.
 */
const BACKDATED = 60
const LIFETIME = 540

/**
 * Creates the token that authenticates an App: a JWT (RFC 7519) signed with RS256, valid for 9 minutes
 * (https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app).
 * `now` is in milliseconds.
 * `setup`: the command that registers another App. @throws RelayError `settings` if the key is not a private key
 */
function appToken({ id, privateKey }: host.AppIdentity, now: number, setup: string): string {
  const seconds = Math.floor(now / 1000)
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
  const claims = { iat: seconds - BACKDATED, exp: seconds + LIFETIME, iss: String(id) }
  const signed = `${encode({ alg: 'RS256', typ: 'JWT' })}.${encode(claims)}`
  try {
    const key = createPrivateKey(privateKey.reveal())
    return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), key).toString('base64url')}`
  } catch {
    // Without a cause, which may quote the key.
    throw new RelayError('settings', `The stored key of the App is unusable. Run ${setup} again`)
  }
}
