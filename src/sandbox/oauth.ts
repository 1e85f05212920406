import { createHash, randomInt } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import { isLoopback, parseUrl } from '../base/address.js'
import type { Clock } from '../base/time.js'
import { type HttpEnv, readBody } from '../http/body.js'
import type { SandboxContext } from './host.js'
import { type Html, notePage, sandboxPage } from './pages.js'
import { GitHubError, invalidField, parseJsonText, readObject } from './protocol.js'
import { BoundedMap, OWNER } from './state.js'
import { type Fields, type OAuth, OneTimeValues, randomSecret } from './tokens.js'
import { fieldsOf } from '../json/parse.js'

/** A valid authorization request that waits for the user. */
interface AuthorizeRequest {
  readonly clientId: string
  readonly redirectUri: string
  readonly state: string | undefined
  readonly scopes: readonly string[]
  /** PKCE S256 challenge; like GitHub, the sandbox does not require one. */
  readonly challenge: string | undefined
}

/** A device that waits for the user's decision. */
interface DeviceRequest {
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly deviceCode: string
  /** Eight letters with a hyphen in the middle. */
  readonly userCode: string
  readonly expiresAt: number
  /** Seconds between two polls. */
  interval: number
  polledAt: number
  decision: 'pending' | 'granted' | 'denied'
}

/** Body limit of forms and token requests, which have a few short fields or a manifest of about 1 KB. */
const FORM_LIMIT = 65_536
/** Maximum number of devices that wait; the oldest are removed first. */
const DEVICE_LIMIT = 1000
/** Lifetime of a code and of a consent page: 10 minutes, like GitHub's. */
const CODE_MS = 600_000
/** Lifetime of the form for a personal access token: an hour. */
const FORM_MS = 3_600_000
/** Seconds in which the user must enter the code of a device. */
const DEVICE_S = 900
/** Seconds between two polls, and what `slow_down` adds to them (RFC 8628 section 3.5). */
const POLL_INTERVAL_S = 5
/** Consonants, so that no code is a word (RFC 8628 section 6.1). */
const ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ'
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

const NOT_HERE = 'The redirect URI is not an address on this computer, such as http://127.0.0.1:8787/.'

/** Scopes that relay asks for, explained for the user (https://docs.github.com/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps). */
const SCOPES: Readonly<Record<string, string>> = {
  public_repo: 'Comment, react and merge in public repositories',
  repo: 'Comment, react, merge and manage webhooks in all repositories',
  'admin:repo_hook': 'Make, change and remove webhooks',
  'read:user': 'Read your profile',
}

/** GitHub's texts for failed requests of applications (https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps). */
const FAILURES = {
  bad_verification_code: 'The code passed is incorrect or expired.',
  incorrect_client_credentials: 'The client_id and/or client_secret passed are incorrect.',
  redirect_uri_mismatch: 'The redirect_uri MUST match the registered callback URL for this application.',
  bad_refresh_token: 'The refresh token passed is incorrect or expired.',
  unsupported_grant_type: 'The grant type is not supported.',
  authorization_pending: 'The authorization request is still pending.',
  slow_down: 'Too many requests have been made in the same timeframe.',
  expired_token: 'This device code has expired.',
  access_denied: 'The authorization request was denied.',
  incorrect_device_code: 'The device_code provided is not valid.',
  device_flow_disabled: 'Device Flow must be explicitly enabled for this App',
} as const

/** Codes of the device flow: a device polls with one while the user enters the other. */
class Devices {
  readonly #clock: Clock
  readonly #requests = new BoundedMap<string, DeviceRequest>(DEVICE_LIMIT)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  issue(clientId: string, scopes: readonly string[]): DeviceRequest {
    const four = (): string => Array.from({ length: 4 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
    const request: DeviceRequest = {
      clientId,
      scopes,
      deviceCode: randomSecret(),
      userCode: `${four()}-${four()}`,
      expiresAt: this.#clock() + DEVICE_S * 1000,
      interval: POLL_INTERVAL_S,
      polledAt: -Infinity,
      decision: 'pending',
    }
    this.#requests.set(request.deviceCode, request)
    return request
  }

  /** Finds the undecided request with the code that a user entered, in any case and with or without its hyphen. */
  enter(text: string | null): DeviceRequest | undefined {
    const letters = text?.toUpperCase().replace(/[^A-Z]/g, '')
    return [...this.#requests.values()].find(
      ({ userCode, decision, expiresAt }) =>
        userCode.replace('-', '') === letters && decision === 'pending' && this.#clock() < expiresAt,
    )
  }

  /** Returns the granted request and uses its code up, or returns GitHub's error. */
  poll(clientId: string, deviceCode: string | null): DeviceRequest | { readonly failed: Fields } {
    const request = this.#requests.get(deviceCode ?? '')
    if (!request || request.clientId !== clientId) return { failed: failure('incorrect_device_code') }
    const now = this.#clock()
    if (now >= request.expiresAt) return { failed: failure('expired_token') }
    const isEarly = now - request.polledAt < request.interval * 1000
    request.polledAt = now
    if (isEarly) {
      request.interval += POLL_INTERVAL_S
      return { failed: { ...failure('slow_down'), interval: request.interval } }
    }
    if (request.decision === 'pending') return { failed: failure('authorization_pending') }
    if (request.decision === 'denied') return { failed: failure('access_denied') }
    this.#requests.delete(request.deviceCode)
    return request
  }
}

/** Signing in, by browser and by device, personal access tokens, and revoking. */
export function oauthRoutes(host: SandboxContext): Hono<HttpEnv> {
  const codes = new OneTimeValues<AuthorizeRequest>(host.clock, CODE_MS)
  const devices = new Devices(host.clock)
  return new Hono<HttpEnv>()
    .route('/', authorizeRoutes(codes, host))
    .post('/login/oauth/access_token', host.faults.inject('token'), async (c) =>
      respond(c, exchange(await readFields(c), host.oauth, codes, devices)),
    )
    .route('/', deviceRoutes(devices, host))
    .route('/', personalTokenRoutes(host))
    .delete('/api/v3/applications/:client/token', (c) => revoke(c, host.oauth))
}

/** Consent page: GET shows it, POST submits its form. */
function authorizeRoutes(
  codes: OneTimeValues<AuthorizeRequest>,
  { oauth, clock, payloads }: SandboxContext,
): Hono<HttpEnv> {
  const consents = new OneTimeValues<AuthorizeRequest>(clock, CODE_MS)
  return new Hono<HttpEnv>()
    .get('/login/oauth/authorize', (c) => {
      const query = new URL(c.req.url).searchParams
      const twice = [...query.keys()].some((name) => query.getAll(name).length > 1)
      if (twice) return refusalPage(400, 'A parameter of this address is given twice.')
      const client = oauth.client(query.get('client_id'))
      if (!client) return refusalPage(404, 'No application has this client id.')
      const redirectUri = query.get('redirect_uri') ?? ''
      // Shown to the user instead of redirecting, which would be an open redirect (RFC 6749 section 4.1.2.1).
      if (!isLoopbackUri(redirectUri)) return refusalPage(400, NOT_HERE)
      const request = {
        clientId: client.id,
        redirectUri,
        challenge: query.get('code_challenge') ?? undefined,
        state: query.get('state') ?? undefined,
        scopes: readScopes(query.get('scope')),
      }
      if ((query.get('response_type') ?? 'code') !== 'code')
        return backWith(c, request, 'unsupported_response_type', 'The only response type here is "code".')
      if (!isChallenge(request.challenge, query.get('code_challenge_method')))
        return backWith(c, request, 'invalid_request', 'A code challenge must be made with S256.')
      return consentPage({
        ...request,
        token: consents.put(request),
        action: '/login/oauth/authorize',
        formAction: ANY_FORM_ACTION,
        note: html`Either way you return to<br /><code>${redirectUri}</code>`,
      })
    })
    .post('/login/oauth/authorize', async (c) => {
      const form = await readForm(c)
      const request = consents.redeem(form.get('authenticity_token'))
      if (!request)
        return refusalPage(422, 'This page was used before, or is older than 10 minutes. Start again.')
      return form.get('authorize') === '1'
        ? back(c, request, { code: codes.put(request) })
        : backWith(c, request, 'access_denied', 'The user has denied your application access.')
    })

  function backWith(c: Context, request: AuthorizeRequest, error: string, why: string): Response {
    return back(c, request, { error, error_description: why })
  }

  /** Redirects to the application. `iss` names the sender (RFC 9207). */
  function back(c: Context, request: AuthorizeRequest, answer: Record<string, string>): Response {
    const location = new URL(request.redirectUri)
    for (const [name, value] of Object.entries(answer)) location.searchParams.set(name, value)
    if (request.state !== undefined) location.searchParams.set('state', request.state)
    location.searchParams.set('iss', `${payloads.web}/login/oauth`)
    return c.redirect(location.href)
  }
}

/** Exchanges a code, a device code or a refresh token for an access token. */
function exchange(
  fields: URLSearchParams,
  oauth: OAuth,
  codes: OneTimeValues<AuthorizeRequest>,
  devices: Devices,
): Fields {
  const grantType = fields.get('grant_type') ?? 'authorization_code'
  // An application without a secret of its own, such as a command, may sign users in by device.
  const client =
    grantType === DEVICE_GRANT
      ? oauth.client(fields.get('client_id'))
      : oauth.authenticate(fields.get('client_id'), fields.get('client_secret'))
  if (!client) return failure('incorrect_client_credentials')
  switch (grantType) {
    case DEVICE_GRANT: {
      const outcome = devices.poll(client.id, fields.get('device_code'))
      return 'failed' in outcome ? outcome.failed : oauth.issue(client, outcome.scopes)
    }
    case 'authorization_code': {
      // A code is used up even by a wrong verifier.
      const request = codes.redeem(fields.get('code'))
      if (!request || request.clientId !== client.id) return failure('bad_verification_code')
      const redirectUri = fields.get('redirect_uri')
      if (redirectUri !== null && redirectUri !== request.redirectUri) return failure('redirect_uri_mismatch')
      if (!verifies(fields.get('code_verifier'), request.challenge)) return failure('bad_verification_code')
      return oauth.issue(client, request.scopes)
    }
    case 'refresh_token':
      return oauth.refresh(client, fields.get('refresh_token')) ?? failure('bad_refresh_token')
    default:
      return failure('unsupported_grant_type')
  }
}

/** Device flow (RFC 8628): the device asks for codes, the user enters one in a browser and decides. */
function deviceRoutes(devices: Devices, { oauth, clock, faults, payloads }: SandboxContext): Hono<HttpEnv> {
  const forms = new OneTimeValues<DeviceRequest>(clock, DEVICE_S * 1000)
  return new Hono<HttpEnv>()
    .post('/login/device/code', faults.inject('device'), async (c) => {
      const fields = await readFields(c)
      const client = oauth.client(fields.get('client_id'))
      if (!client) return respond(c, { error: 'Not Found' }, 404)
      if (!client.deviceFlow) return respond(c, failure('device_flow_disabled'), 400)
      const { deviceCode, userCode } = devices.issue(client.id, readScopes(fields.get('scope')))
      return respond(c, {
        device_code: deviceCode,
        user_code: userCode,
        verification_uri: `${payloads.web}/login/device`,
        expires_in: DEVICE_S,
        interval: POLL_INTERVAL_S,
      })
    })
    .get('/login/device', () => enterCodePage())
    .post('/login/device', async (c) => {
      const request = devices.enter((await readForm(c)).get('user_code'))
      if (!request) return enterCodePage(422)
      return consentPage({
        ...request,
        token: forms.put(request),
        action: '/login/device/confirmation',
        formAction: "'self'",
        note: `Continue only if your own screen shows ${request.userCode}. Otherwise someone else would sign in as you.`,
      })
    })
    .post('/login/device/confirmation', async (c) => {
      const form = await readForm(c)
      const request = devices.enter(forms.redeem(form.get('authenticity_token'))?.userCode ?? null)
      if (!request) return enterCodePage(422)
      request.decision = form.get('authorize') === '1' ? 'granted' : 'denied'
      return request.decision === 'granted'
        ? notePage('You are signed in', 'The program continues by itself. You can close this page.')
        : notePage('You were not signed in', 'The program gets no access. You can close this page.')
    })
}

/** Page on which the user enters the code that the device shows. 422 means that the last one was wrong. */
function enterCodePage(status: 200 | 422 = 200): Promise<Response> {
  const alert = html`<p role="alert">
    <strong>No device waits for this code. Check it, or ask the device for another one.</strong>
  </p>`
  const page = {
    title: 'Device activation',
    formAction: "'self'",
    body: html`<div class="narrow">
      <h1 class="center">Device activation</h1>
      <section class="card">
        <p>Enter the code shown by the program that wants to sign in.</p>
        ${status === 422 ? alert : ''}
        <form method="post" action="/login/device" class="entry">
          <input
            name="user_code"
            aria-label="Code"
            placeholder="XXXX-XXXX"
            maxlength="9"
            autocomplete="off"
            autofocus
            required
          />
          <button class="go">Continue</button>
        </form>
      </section>
    </div>`,
  }
  return sandboxPage(page, status)
}

/** Personal access tokens, which the user makes for programs without an application (https://docs.github.com/authentication/keeping-your-account-and-data-secure/managing-your-personal-access-tokens). */
function personalTokenRoutes({ oauth, clock }: SandboxContext): Hono<HttpEnv> {
  const forms = new OneTimeValues<true>(clock, FORM_MS)
  return new Hono<HttpEnv>()
    .get('/settings/tokens/new', () => newTokenPage(forms.put(true)))
    .post('/settings/tokens', async (c) => {
      const form = await readForm(c)
      if (!forms.redeem(form.get('authenticity_token'))) return newTokenPage(forms.put(true), 422)
      const scopes = form.get('kind') === 'classic' ? ['repo'] : undefined
      const title = 'Your personal access token'
      return sandboxPage({
        title,
        body: html`<h1>${title}</h1>
          <p><code id="token">${oauth.issuePersonal(scopes)}</code></p>
          <p>Copy it now: it is not shown again. It ends with the sandbox.</p>`,
      })
    })
}

/**
 * Page with a button for each kind of token. `token` is the form's anti-forgery token; 422 means that the last one had
 * expired.
 */
function newTokenPage(token: string, status: 200 | 422 = 200): Promise<Response> {
  const title = 'New personal access token'
  const page = {
    title,
    formAction: "'self'",
    body: html`<h1>${title}</h1>
      ${status === 422 ? html`<p role="alert"><strong>The form was too old. Send it again.</strong></p>` : ''}
      <p>The sandbox lets each of them do everything; they differ in what they look like to a program.</p>
      <form method="post" action="/settings/tokens" class="list">
        <input type="hidden" name="authenticity_token" value="${token}" />
        <button class="go" name="kind" value="classic">Classic, with the scope repo</button>
        <button name="kind" value="write">Fine-grained, to read and write</button>
        <button name="kind" value="read">Fine-grained, to read</button>
      </form>`,
  }
  return sandboxPage(page, status)
}

/** Revokes one access token for the application itself (https://docs.github.com/rest/apps/oauth-applications). */
async function revoke(c: Context<HttpEnv>, oauth: OAuth): Promise<Response> {
  // Name and password of HTTP's Basic scheme (RFC 7617).
  const [, encoded = ''] = /^basic +(\S+)$/i.exec(c.req.header('authorization') ?? '') ?? []
  const [, id = '', secret = ''] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? []
  const client = oauth.authenticate(id, secret)
  if (!client) throw new GitHubError(401, 'Bad credentials')
  const { access_token: accessToken } = await readObject(c)
  if (c.req.param('client') !== client.id) throw new GitHubError(404, 'Not Found')
  if (typeof accessToken !== 'string' || accessToken === '')
    throw invalidField('OauthAccess', { code: 'missing_field', field: 'access_token' })
  const grant = oauth.find(accessToken)
  if (grant?.clientId !== client.id) throw new GitHubError(404, 'Not Found')
  oauth.revoke(grant)
  return c.body(null, 204)
}

/**
 * CSP source list for a consent page's form. Chromium applies form-action to every redirect after a form, and the
 * application may be on any port. This is safe: the form's own address is fixed, and a page without script cannot
 * change it.
 */
export const ANY_FORM_ACTION = "'self' http: https:"

interface Consent {
  readonly clientId: string
  readonly scopes: readonly string[]
  /** The form's anti-forgery token. */
  readonly token: string
  readonly action: string
  readonly formAction: string
  readonly note: Html | string
}

/** Page that names the application and its requested scopes, with a button for each decision. */
function consentPage({ clientId, scopes, token, action, formAction, note }: Consent): Promise<Response> {
  const title = `Authorize ${clientId}`
  const body = html`<div class="narrow">
    <h1 class="center">${title}</h1>
    <section class="card">
      <p><strong>${clientId}</strong> wants to use your account <strong>${OWNER}</strong> to:</p>
      <ul>
        ${scopes.map((scope) => html`<li>${SCOPES[scope] ?? 'Have other access'} <small>(${scope})</small></li>`)}
        ${scopes.length === 0 ? html`<li>Read public information</li>` : ''}
      </ul>
      <form method="post" action="${action}">
        <input type="hidden" name="authenticity_token" value="${token}" />
        <button class="go" name="authorize" value="1">Authorize</button>
        <button name="authorize" value="0">Cancel</button>
      </form>
    </section>
    <p class="soft center">${note}</p>
  </div>`
  return sandboxPage({ title, formAction, body })
}

/** Page that explains why a sign-in or the registration of an App ends here. */
export function refusalPage(status: 400 | 404 | 422, why: string): Promise<Response> {
  return notePage('This sign-in cannot continue', why, status)
}

/** True for a loopback URI, the only kind that the sandbox accepts. As at GitHub, any port is accepted. */
export function isLoopbackUri(address: string): boolean {
  const url = parseUrl(address)
  if (!url || !/^https?:$/.test(url.protocol)) return false
  return isLoopback(url.hostname) && url.username + url.password + url.hash === ''
}

/** Reads the form of a page. */
export async function readForm(c: Context<HttpEnv>): Promise<URLSearchParams> {
  return new URLSearchParams(new TextDecoder().decode(await readBody(c, FORM_LIMIT)))
}

/** Reads a form or a JSON object, the two encodings that GitHub accepts. Anything else has no fields. */
async function readFields(c: Context<HttpEnv>): Promise<URLSearchParams> {
  const text = new TextDecoder().decode(await readBody(c, FORM_LIMIT))
  const isJson = /^application\/json\b/i.test(c.req.header('content-type') ?? '')
  return isJson ? toForm(fieldsOf(parseJsonText(text))) : new URLSearchParams(text)
}

/** Sends a form, or JSON if `Accept` names it, like GitHub. */
function respond(c: Context, fields: Fields, status: 200 | 400 | 404 = 200): Response {
  c.header('Cache-Control', 'no-store')
  if (c.req.header('accept')?.includes('application/json')) return c.json(fields, status)
  c.header('Content-Type', 'application/x-www-form-urlencoded; charset=utf-8')
  return c.body(toForm(fields).toString(), status)
}

/** Fields of a failure's response, which GitHub mostly sends with status 200. */
function failure(error: keyof typeof FAILURES): Fields {
  const error_uri =
    'https://docs.github.com/apps/managing-oauth-apps/troubleshooting-oauth-app-access-token-request-errors/'
  return { error, error_description: FAILURES[error], error_uri }
}

function toForm(object: object): URLSearchParams {
  return new URLSearchParams(
    Object.entries(object).map(([name, value]): [string, string] => [name, String(value)]),
  )
}

/** Reads a list of scopes, separated by spaces or, as GitHub accepts too, by commas. */
function readScopes(text: string | null): readonly string[] {
  return [...new Set(text?.match(/[a-z_:]+/g) ?? [])]
}

/** True if the challenge is absent, or was made with S256. */
function isChallenge(challenge: string | undefined, method: string | null): boolean {
  if (challenge === undefined && method === null) return true
  return method === 'S256' && challenge !== undefined && /^[A-Za-z0-9_-]{43}$/.test(challenge)
}

/**
 * Checks a verifier (RFC 7636 section 4.6). A verifier without a challenge fails too, since an attacker may have
 * removed the challenge.
 */
function verifies(verifier: string | null, challenge: string | undefined): boolean {
  if (verifier === null || challenge === undefined) return (verifier ?? undefined) === challenge
  const wellFormed = /^[A-Za-z0-9._~-]{43,128}$/.test(verifier)
  return wellFormed && createHash('sha256').update(verifier).digest('base64url') === challenge
}
