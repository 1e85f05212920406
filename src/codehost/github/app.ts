import { createPrivateKey, sign } from 'node:crypto'
import { z } from 'zod'
import type { Cancellable } from '../../base/wait.js'
import { RelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import { systemClock } from '../../base/time.js'
import { webAddress } from '../github-like.js'
import type * as host from '../host.js'
import { type Api, path, Refusal, Rest } from '../rest.js'
import { deliveryLog } from './hooks.js'

/** The least that comment, merge and react, hooks, and reading checks and statuses need. */
const PERMISSIONS = {
  issues: 'write',
  pull_requests: 'write',
  contents: 'write',
  repository_hooks: 'write',
  checks: 'read',
  statuses: 'read',
} as const

/** The events that an App with these permissions can have, of those that happen on issues, pull requests and branches. */
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
export function githubApps(api: Api, web: string): host.Apps {
  return {
    page: (organization) =>
      organization === undefined
        ? `${web}/settings/apps/new`
        : `${web}/organizations/${encodeURIComponent(organization)}/settings/apps/new`,
    manifest: ({ name, redirectUrl, callbackUrl, hook }) =>
      JSON.stringify({
        name,
        // The homepage, which a manifest must name.
        url: new URL(callbackUrl).origin,
        description: 'Receives webhooks and acts for its users, with relay',
        redirect_url: redirectUrl,
        callback_urls: [callbackUrl],
        public: false,
        default_permissions: PERMISSIONS,
        ...(hook && { hook_attributes: hook, default_events: EVENTS }),
      }),
    /** https://docs.github.com/rest/apps/apps#create-a-github-app-from-a-manifest */
    async convert(code, options) {
      const call = { body: {}, answer: converted }
      return (
        await new Rest(api, undefined, options).call('POST', path`/app-manifests/${code}/conversions`, call)
      ).value
    },
    as: (app, options) => new GitHubApp(api, web, app, options),
  }
}

const required = z.string().min(1)

const converted = z
  .object({
    id: z.int(),
    slug: required,
    html_url: webAddress,
    client_id: required,
    client_secret: required,
    webhook_secret: required.nullable(),
    pem: required,
  })
  .transform((app): host.RegisteredApp => ({
    app: { id: app.id, slug: app.slug, privateKey: new Secret(app.pem) },
    client: { id: app.client_id, secret: new Secret(app.client_secret) },
    webhookSecret: app.webhook_secret === null ? undefined : new Secret(app.webhook_secret),
    installUrl: `${app.html_url}/installations/new`,
  }))

const described = z
  .object({ html_url: webAddress, installations_count: z.int().optional() })
  .transform(({ html_url, installations_count }): host.AppDescription => ({
    installUrl: `${html_url}/installations/new`,
    installations: installations_count,
  }))

const config = z
  .object({
    url: z.string().default(''),
    content_type: z.string().default('form'),
    secret: z.string().optional(),
  })
  .transform(({ url, content_type: contentType, secret }): host.AppHook => ({
    url,
    contentType,
    hasSecret: secret !== undefined,
  }))

/** https://docs.github.com/rest/apps/apps and https://docs.github.com/rest/apps/webhooks */
class GitHubApp implements host.AppAccount {
  readonly log: host.DeliveryLog
  readonly #rest: Rest
  readonly #explained: <T>(call: Promise<T>) => Promise<T>

  constructor(api: Api, web: string, app: host.AppIdentity, options?: Cancellable) {
    // Made for each call, since it is valid for minutes.
    const token = (): Promise<string> => Promise.resolve(appToken(app, systemClock()))
    this.#rest = new Rest(api, { token }, options)
    this.#explained = (call) =>
      call.catch((error: unknown) => {
        throw explained(error, app.slug, web)
      })
    const log = deliveryLog(this.#rest, '/app/hook/deliveries')
    this.log = {
      page: (cursor) => this.#explained(log.page(cursor)),
      redeliver: (id) => this.#explained(log.redeliver(id)),
    }
  }

  async describe(): Promise<host.AppDescription> {
    return (await this.#explained(this.#rest.call('GET', '/app', { answer: described }))).value
  }

  async isInstalled({ owner, repo }: host.Repo): Promise<boolean> {
    try {
      await this.#explained(this.#rest.call('GET', path`/repos/${owner}/${repo}/installation`))
      return true
    } catch (error) {
      if (error instanceof RelayError && error.kind === 'not_found') return false
      throw error
    }
  }

  async hook(): Promise<host.AppHook> {
    return (await this.#explained(this.#rest.call('GET', '/app/hook/config', { answer: config }))).value
  }

  async changeHook({ url, secret }: Parameters<host.AppAccount['changeHook']>[0]): Promise<host.AppHook> {
    const body = { url, content_type: 'json', secret: secret.reveal() }
    const call = this.#rest.call('PATCH', '/app/hook/config', { body, answer: config })
    return (await this.#explained(call)).value
  }
}

/** The error of a call that an App makes, with what to do about it. Others stay as they are. */
function explained(error: unknown, slug: string, web: string): unknown {
  if (!(error instanceof Refusal)) return error
  const { upstreamMessage: message, kind } = error
  // A 404 with another message is about what the App asked for.
  if (message === 'Integration not found')
    return new RelayError(
      'gone',
      `${web} has no App ${slug} any more: it was deleted there. Register another with relay setup`,
      { cause: error },
    )
  if (kind !== 'invalid_token') return error
  // GitHub names the claim of a time that it does not accept.
  const why = /'(?:exp|iat)'/.test(message)
    ? `${web} refused the token of the App ${slug}: ${message}. Set this machine's clock; relay doctor compares it`
    : `${web} refused the key of the App ${slug}: it was removed there. Delete the App there, and register another with relay setup`
  return new RelayError('forbidden', why, { cause: error })
}

/** Seconds by which the token is dated back, since clocks differ, and for which it is valid: GitHub allows 600 in all. */
const BACKDATED = 60
const LIFETIME = 540

/**
 * Token that authenticates an App: a JWT (RFC 7519) signed with RS256, valid for 9 minutes
 * (https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app).
 * `now` is in milliseconds.
 * @throws RelayError `settings` if the key is not a private key
 */
export function appToken({ id, privateKey }: host.AppIdentity, now: number): string {
  const seconds = Math.floor(now / 1000)
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url')
  const claims = { iat: seconds - BACKDATED, exp: seconds + LIFETIME, iss: String(id) }
  const signed = `${encode({ alg: 'RS256', typ: 'JWT' })}.${encode(claims)}`
  try {
    const key = createPrivateKey(privateKey.reveal())
    return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), key).toString('base64url')}`
  } catch {
    // Without a cause, which may quote the key.
    throw new RelayError('settings', 'The stored key of the App is unusable. Run relay setup again')
  }
}
