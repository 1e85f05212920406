import { generateKeyPair, verify } from 'node:crypto'
import { promisify } from 'node:util'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { html } from 'hono/html'
import { z } from 'zod/mini'
import { Secret } from '../base/secret.js'
import { GITHUB_WEBHOOK } from '../senders/github.js'
import type { HttpEnv } from '../http/body.js'
import { isObject, memberOf } from '../json/parse.js'
import { deliveryRoutes, isHttpUrl, readConfig } from './hook-routes.js'
import { configResource, type Hook } from './hooks.js'
import { findRepo, type SandboxContext } from './host.js'
import { ANY_FORM_ACTION, isLoopbackUri, readForm, refusalPage } from './oauth.js'
import { notePage, plainTable, sandboxPage } from './pages.js'
import { nodeId } from './payloads.js'
import {
  bearerOf,
  requireFound,
  GitHubError,
  type JsonObject,
  parseJsonText,
  readObject,
  responseSent,
  setCommonHeaders,
} from './protocol.js'
import { OWNER } from './state.js'
import { OneTimeValues, randomSecret } from './tokens.js'

/** The whole manifest flow ends after an hour. */
const FLOW_MS = 3_600_000
/** First id of an App, and how far that of its installation is from it. */
const FIRST_ID = 301
const INSTALLATION_OFFSET = 100
/** Longest lifetime of an App's token, in seconds. */
const MAX_TOKEN_S = 600
/** GitHub's limits for the name of an App, in characters, and for its callback addresses. */
const MAX_NAME = 34
const MAX_CALLBACKS = 10
/** Names that GitHub gives to accounts: up to 39 letters, digits and single hyphens. */
const ACCOUNT_NAME = /^(?=.{1,39}$)[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*$/

const httpUrl = z.string().check(z.refine(isHttpUrl, 'not a web address'))
const isEvent = (event: string): boolean => GITHUB_WEBHOOK.events.get(event)?.actions !== undefined

/** @see https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest#github-app-manifest-parameters */
const MANIFEST = z.object({
  name: z._default(z.string().check(z.maxLength(MAX_NAME)), ''),
  url: httpUrl,
  description: z._default(z.string(), ''),
  redirect_url: z.string().check(z.refine(isLoopbackUri, 'not an address on this computer')),
  callback_urls: z._default(z.array(httpUrl).check(z.maxLength(MAX_CALLBACKS)), []),
  hook_attributes: z.optional(z.object({ url: httpUrl, active: z._default(z.boolean(), true) })),
  default_events: z._default(z.array(z.string().check(z.refine(isEvent, 'not an event'))), []),
  default_permissions: z._default(z.record(z.string(), z.enum(['read', 'write', 'admin'])), {}),
})

/** A registered App. */
interface App {
  readonly id: number
  /** Name of the App in addresses. */
  readonly slug: string
  /** Login of the account that it belongs to: the user, or an organization. */
  readonly owner: string
  readonly manifest: z.infer<typeof MANIFEST>
  readonly clientId: string
  /** Public key in PEM, which verifies the App's tokens. */
  readonly publicKey: string
  readonly hookId: number | undefined
  readonly createdAt: string
  /** Undefined: it is not installed. */
  installedAt: string | undefined
}

/** A registration that the user has to confirm. */
interface Registration extends Pick<App, 'manifest' | 'owner'> {
  readonly state: string | undefined
}

/** A newly registered App, with the secrets that only the response to its code shows. */
interface Registered {
  readonly app: App
  readonly secrets: JsonObject
}

/** Registered Apps, and the manifest flow that registers them. */
export class SandboxApps {
  readonly #host: SandboxContext
  readonly #apps = new Map<string, App>()
  /** New Apps by the code of the manifest flow. Each is redeemed once, within an hour. */
  readonly registered: OneTimeValues<Registered>

  constructor(host: SandboxContext) {
    this.#host = host
    this.registered = new OneTimeValues(host.clock, FLOW_MS)
  }

  /** Finds the App with this id or client id: a token's `iss` may be either. */
  find(issuer: string): App | undefined {
    return [...this.#apps.values()].find(({ id, clientId }) => String(id) === issuer || clientId === issuer)
  }

  /** @throws GitHubError 404 */
  bySlug(slug: string): App {
    return requireFound(this.#apps.get(slug))
  }

  /**
   * Registers an App, with its client and its hook. Returns its code, or the reason for the user why the name is
   * refused.
   */
  async register({ manifest, owner }: Registration): Promise<{ code: string } | { refusal: string }> {
    const { name, hook_attributes: attributes, default_events: events } = manifest
    const slug = name
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-|-$/g, '')
    if (slug === '') return { refusal: 'The App needs a name.' }
    const keys = await promisify(generateKeyPair)('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    })
    if (this.#apps.has(slug)) return { refusal: 'Name is already taken.' }
    const id = FIRST_ID + this.#apps.size
    const clientId = `Iv23li${randomSecret().slice(0, 14)}`
    const [client_secret, secret] = [randomSecret(), randomSecret()]
    const config = { content_type: 'json', insecure_ssl: '0', secret: new Secret(secret) } as const
    const hook =
      attributes &&
      this.#host.hooks.add({
        repo: undefined,
        app: { id, installationId: undefined },
        active: attributes.active,
        events,
        config: { ...config, url: () => attributes.url },
      })
    const made = { id, slug, owner, manifest, clientId, publicKey: keys.publicKey, hookId: hook?.id }
    const app: App = { ...made, createdAt: this.#host.state.now(), installedAt: undefined }
    this.#apps.set(slug, app)
    // As at GitHub, device flow is off until the owner switches it on.
    this.#host.oauth.addClient({ id: clientId, secret: client_secret, deviceFlow: false, isApp: true })
    const secrets = { client_secret, webhook_secret: hook ? secret : null, pem: keys.privateKey }
    return { code: this.registered.put({ app, secrets }) }
  }

  /** Installs the App on the account. Its hook receives events from then on. */
  install(app: App): void {
    if (app.installedAt !== undefined) return
    const { state, payloads, hooks } = this.#host
    app.installedAt = state.now()
    const known = hooks.get(app.hookId)
    if (!known?.active) return
    const hook = hooks.change(known, { app: { id: app.id, installationId: installationId(app) } })
    const repositories = state.repos.map(({ fullName }) => {
      const { id, node_id, name, full_name, private: isPrivate } = payloads.repository(fullName)
      return { id, node_id, name, full_name, private: isPrivate }
    })
    const installation = installationResource(app, this.#host)
    const sender = payloads.user(OWNER)
    const payload = { action: 'created', installation, repositories, requester: null, sender }
    hooks.send(hook, 'installation', payload)
  }
}

function installationId({ id }: App): number {
  return id + INSTALLATION_OFFSET
}

type AppEnv = HttpEnv & { Variables: { app: App } }

/** The last step of the manifest flow, and the routes for the App itself (https://docs.github.com/rest/apps). */
export function appRoutes(apps: SandboxApps, host: SandboxContext): Hono<AppEnv> {
  const { clock, faults, hooks, state } = host
  const fault = faults.inject('hook')
  const asApp: MiddlewareHandler<AppEnv> = async (c, next) => {
    setCommonHeaders(c, clock)
    c.set('app', authenticate(apps, bearerOf(c), clock() / 1000))
    await next()
  }
  const findHook = (c: Context): Hook => requireFound(hooks.get(c.get('app').hookId))
  return new Hono<AppEnv>()
    .post('/app-manifests/:code/conversions', faults.inject('convert'), (c) => {
      setCommonHeaders(c, clock)
      const { app, secrets } = requireFound(apps.registered.redeem(c.req.param('code')))
      const hook = hooks.get(app.hookId)
      if (hook?.active) hooks.ping(hook, responseSent(c))
      return c.json({ ...appResource(app, host), ...secrets }, 201)
    })
    .get('/repos/:owner/:repo/installation', asApp, (c) => {
      findRepo(c, state)
      const app = c.get('app')
      return c.json(installationResource(requireFound(app.installedAt === undefined ? undefined : app), host))
    })
    .use('/app/*', asApp)
    .get('/app', (c) => c.json(appResource(c.get('app'), host)))
    .get('/app/hook/config', fault, (c) => c.json(configResource(findHook(c))))
    .patch('/app/hook/config', fault, async (c) => {
      const hook = findHook(c)
      const config = readConfig(await readObject(c), hook.config)
      return c.json(configResource(hooks.change(hook, { config })))
    })
    .route('/app/hook/deliveries', deliveryRoutes(host, findHook))
}

/**
 * Finds the App that a token authenticates: JWT, RS256, `iss` the App's id or client id, valid for at most 10 minutes
 * (https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app).
 * `now` is in seconds.
 * @throws GitHubError 401, or 404 for an App that is not registered
 */
function authenticate(apps: SandboxApps, token: string, now: number): App {
  const undecodable = (): GitHubError => new GitHubError(401, 'A JSON web token could not be decoded')
  const [header = '', payload = '', signature = '', ...rest] = token.split('.')
  const decode = (part: string): unknown => parseJsonText(Buffer.from(part, 'base64url').toString())
  const claims = decode(payload)
  if (rest.length > 0 || memberOf(decode(header), 'alg') !== 'RS256' || !isObject(claims)) throw undecodable()
  const { iss, iat, exp } = claims
  if (typeof iss !== 'string' && typeof iss !== 'number')
    throw new GitHubError(401, "Missing 'issuer' claim ('iss') in assertion")
  const app = apps.find(String(iss))
  if (!app) throw new GitHubError(404, 'Integration not found')
  const signed = Buffer.from(`${header}.${payload}`)
  if (!verify('RSA-SHA256', signed, app.publicKey, Buffer.from(signature, 'base64url'))) throw undecodable()
  if (typeof exp !== 'number' || exp <= now)
    throw new GitHubError(
      401,
      "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires",
    )
  if (exp > now + MAX_TOKEN_S)
    throw new GitHubError(401, "'Expiration time' claim ('exp') is too far in the future")
  if (typeof iat !== 'number' || !Number.isInteger(iat) || iat > now)
    throw new GitHubError(
      401,
      "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
    )
  return app
}

/** App (https://docs.github.com/rest/apps/apps#get-the-authenticated-app). */
function appResource(app: App, { payloads }: SandboxContext): JsonObject {
  const { id, slug, owner, manifest, clientId, createdAt } = app
  return {
    id,
    slug,
    client_id: clientId,
    node_id: nodeId('Integration', id),
    owner: payloads.user(owner),
    name: manifest.name,
    description: manifest.description,
    external_url: manifest.url,
    html_url: `${payloads.web}/apps/${slug}`,
    created_at: createdAt,
    updated_at: createdAt,
    permissions: manifest.default_permissions,
    events: manifest.default_events,
    installations_count: app.installedAt ? 1 : 0,
  }
}

/** Installation of an App on all repositories (https://docs.github.com/rest/apps/apps#get-a-repository-installation-for-the-authenticated-app). */
function installationResource(app: App, { payloads }: SandboxContext): JsonObject {
  const { id, slug, manifest, installedAt } = app
  return {
    ...payloads.installation(installationId(app)),
    app_id: id,
    app_slug: slug,
    permissions: manifest.default_permissions,
    events: manifest.default_events,
    created_at: installedAt,
    updated_at: installedAt,
  }
}

const NOT_REGISTERED = 'No App was registered'
const USED = 'This page was used before, or is older than an hour.'

/** Pages of the manifest flow and of installing an App. */
export function appPages(apps: SandboxApps, { clock }: SandboxContext): Hono<HttpEnv> {
  const pages = new OneTimeValues<Registration>(clock, FLOW_MS)
  const installPages = new OneTimeValues<string>(clock, FLOW_MS)
  return new Hono<HttpEnv>()
    .get('/settings/apps/new', () =>
      notePage(NOT_REGISTERED, 'A program sends a manifest to this page.', 422),
    )
    .post('/settings/apps/new', (c) => ask(c, OWNER))
    .post('/organizations/:organization/settings/apps/new', (c) => ask(c, c.req.param('organization')))
    .post('/settings/apps', async (c) => {
      const form = await readForm(c)
      const registration = pages.redeem(form.get('authenticity_token'))
      if (!registration) return refusalPage(422, USED)
      const manifest = { ...registration.manifest, name: form.get('name') ?? '' }
      const outcome = await apps.register({ ...registration, manifest })
      if ('refusal' in outcome) return newAppPage(registration, pages.put(registration), outcome.refusal)
      const location = new URL(manifest.redirect_url)
      location.searchParams.set('code', outcome.code)
      if (registration.state !== undefined) location.searchParams.set('state', registration.state)
      return c.redirect(location.href)
    })
    .get('/apps/:slug', (c) => c.redirect(`/apps/${c.req.param('slug')}/installations/new`))
    .get('/apps/:slug/installations/new', (c) => {
      const app = apps.bySlug(c.req.param('slug'))
      return app.installedAt ? installedPage(app) : installPage(app, installPages.put(app.slug))
    })
    .post('/apps/:slug/installations', async (c) => {
      const app = apps.bySlug(c.req.param('slug'))
      const slug = installPages.redeem((await readForm(c)).get('authenticity_token'))
      if (slug !== app.slug) return refusalPage(422, USED)
      apps.install(app)
      return installedPage(app)
    })

  /** Asks the user to register the App of a manifest. Every organization belongs to the user. */
  async function ask(c: Context<HttpEnv>, owner: string): Promise<Response> {
    if (!ACCOUNT_NAME.test(owner)) throw new GitHubError(404, 'Not Found')
    const text = (await readForm(c)).get('manifest') ?? ''
    const { data: manifest, error } = MANIFEST.safeParse(parseJsonText(text))
    if (error) return notePage(NOT_REGISTERED, `Its manifest is invalid. ${z.prettifyError(error)}`, 422)
    const registration = { manifest, owner, state: c.req.query('state') }
    return newAppPage(registration, pages.put(registration))
  }
}

/** Page on which the user names and registers the App of a manifest. `token` is the form's anti-forgery token. */
function newAppPage({ manifest, owner }: Registration, token: string, why?: string): Promise<Response> {
  const title = 'Create GitHub App'
  const { name, hook_attributes: hook, default_events: events, redirect_url: redirectUrl } = manifest
  const rows = Object.entries(manifest.default_permissions).map(
    ([permission, access]) => [`Permission ${permission}`, access] as const,
  )
  const page = {
    title,
    formAction: ANY_FORM_ACTION,
    body: html`<h1>${title}</h1>
      <p>A program asks to register an App in the account <strong>${owner}</strong>.</p>
      ${why === undefined ? '' : html`<p role="alert"><strong>${why}</strong></p>`}
      ${plainTable([
        ...rows,
        ['Events', events.join(', ') || 'none'],
        ['Webhook', hook ? `${hook.url}${hook.active ? '' : ' (inactive)'}` : 'none'],
      ])}
      <form method="post" action="/settings/apps" class="entry">
        <input type="hidden" name="authenticity_token" value="${token}" />
        <input name="name" aria-label="Name" value="${name}" maxlength="34" autocomplete="off" required />
        <button class="go">${title} for ${owner}</button>
      </form>
      <p class="soft">You return to <code>${redirectUrl}</code></p>`,
  }
  return sandboxPage(page, why === undefined ? 200 : 422)
}

/** Page on which the user installs an App. `token` is the form's anti-forgery token. */
function installPage({ manifest, slug }: App, token: string): Promise<Response> {
  const permissions = Object.entries(manifest.default_permissions)
  return sandboxPage({
    title: `Install ${manifest.name}`,
    formAction: "'self'",
    body: html`<div class="narrow">
      <h1 class="center">Install ${manifest.name}</h1>
      <section class="card">
        <p>On all repositories of <strong>${OWNER}</strong>, with these permissions:</p>
        <ul>
          ${permissions.map(([name, access]) => html`<li>${name}: ${access}</li>`)}
        </ul>
        <form method="post" action="/apps/${slug}/installations">
          <input type="hidden" name="authenticity_token" value="${token}" />
          <button class="go">Install</button>
        </form>
      </section>
    </div>`,
  })
}

function installedPage({ manifest }: App): Promise<Response> {
  return notePage(`${manifest.name} is installed`, `On all repositories of ${OWNER}.`)
}
