import { createHash, randomBytes } from 'node:crypto'
import type { GitLabToken } from './gitlab-parts.js'
import { type FullReply, type Received, valuesOf } from './receiver.js'

interface Grant {
  readonly username: string
  readonly scope: string
  readonly redirectUri: string
  readonly challenge: string | null
}

interface Device {
  readonly userCode: string
  readonly scope: string
  readonly ends: number
  says: 'pending' | 'agreed' | 'denied'
  asked: number
}

export type OAuthState = ReturnType<typeof oauthState>

export function oauthState() {
  return {
    tokens: new Map<string, GitLabToken>(),
    client: {
      id: randomBytes(32).toString('hex'),
      secret: 'gloas-the-client_secret.x',
      redirectUris: [] as string[],
      confidential: true,
    },
    codes: new Map<string, Grant>(),
    devices: new Map<string, Device>(),
    /** Whether an administrator has switched the device flow off (feature flag `oauth2_device_grant_flow`, until 17.8). */
    noDevices: false,
    /** Forms that the token endpoint got, without secrets. */
    forms: [] as Record<string, string>[],
  }
}

/** Seconds for which an access token works (`access_token_expires_in` in config/initializers/doorkeeper.rb). */
const LIFETIME = 7200
/** Seconds of a device code, and between two polls (doorkeeper_device_authorization_grant.rb). */
const DEVICE_LIFETIME = 300

/** Answers of Doorkeeper 5.8 (config/locales/en.yml), with the forms of RFC 6749 section 5.2. */
const ERRORS: Readonly<Record<string, string>> = {
  invalid_client:
    'Client authentication failed due to unknown client, no client authentication included, or unsupported authentication method.',
  invalid_grant:
    'The provided authorization grant is invalid, expired, revoked, does not match the redirection URI used in the authorization request, or was issued to another client.',
  unsupported_grant_type: 'The authorization grant type is not supported by the authorization server.',
  unauthorized_client: 'You are not authorized to revoke this token',
  invalid_request:
    'The request is missing a required parameter, includes an unsupported parameter value, or is otherwise malformed.',
  authorization_pending: 'The authorization request is still pending.',
  slow_down: 'The client is polling too often.',
  expired_token: 'The device code has expired.',
  access_denied: 'The resource owner or authorization server denied the request.',
}

function refused(error: string, status = error === 'invalid_client' ? 401 : 400): FullReply {
  return { status, body: { error, error_description: ERRORS[error] ?? error } }
}

/**
 * The OAuth server: config/initializers/doorkeeper.rb, app/controllers/oauth/tokens_controller.rb of 31d26560645f,
 * app/controllers/oauth/token_info_controller.rb, and Doorkeeper.
 */
export function answerOAuth(
  state: OAuthState,
  request: Received,
  path: string,
  query: URLSearchParams,
): FullReply {
  const form = formOf(request)
  const what = `${request.method} ${path}`
  if (what === 'GET /oauth/authorize') return consentPage(state, query)
  if (what === 'POST /oauth/authorize') return decide(state, form)
  if (what === 'GET /oauth/token/info') return info(state, request)
  if (request.method !== 'POST') return { status: 404, body: '<html>404</html>' }
  if (path === '/oauth/authorize_device') return deviceCodes(state, form, request)
  if (path === '/oauth/token') {
    const { client_secret: _, ...shown } = form
    state.forms.push(shown)
    return exchange(state, form)
  }
  return path === '/oauth/revoke' ? revoke(state, form) : { status: 404, body: '<html>404</html>' }
}

/** Rails reads forms and JSON. */
function formOf(request: Received): Record<string, string> {
  const text = request.body.toString()
  const [type = ''] = valuesOf(request, 'content-type')
  if (type.startsWith('application/json')) return JSON.parse(text)
  return Object.fromEntries(new URLSearchParams(text))
}

/** What is wrong with a request to authorize is shown as a page, and goes nowhere. */
function consentPage({ client }: OAuthState, query: URLSearchParams): FullReply {
  const uri = query.get('redirect_uri') ?? ''
  const isKnown =
    query.get('client_id') === client.id && client.redirectUris.some((each) => isSame(each, uri))
  if (!isKnown) return { status: 401, body: '<html>The redirect URI included is not valid.</html>' }
  const fields = [...query].map(([name, value]) => `<input type="hidden" name="${name}" value="${value}">`)
  return { body: `<html><form method="post" action="/oauth/authorize">${fields.join('')}</form></html>` }
}

/** Doorkeeper's RedirectUriChecker: exact, but for the port of a loopback IP (RFC 8252 section 7.3). */
function isSame(known: string, given: string): boolean {
  const [one, other] = [known, given].map((text) => new URL(text))
  if (one && other && ['127.0.0.1', '[::1]'].includes(one.hostname)) one.port = other.port
  return one?.href === other?.href
}

/** The user presses Authorize, or Cancel (a DELETE in a form, as Rails writes it). */
function decide(state: OAuthState, form: Record<string, string>): FullReply {
  const target = new URL(form['redirect_uri'] ?? '')
  if (form['state'] !== undefined) target.searchParams.set('state', form['state'])
  if (form['_method'] === 'delete') {
    target.searchParams.set('error', 'access_denied')
    target.searchParams.set('error_description', ERRORS['access_denied'] ?? '')
  } else {
    const code = randomBytes(32).toString('hex')
    state.codes.set(code, {
      username: 'mona',
      scope: form['scope'] ?? 'api',
      redirectUri: form['redirect_uri'] ?? '',
      challenge: form['code_challenge'] ?? null,
    })
    target.searchParams.set('code', code)
  }
  return { status: 302, headers: { location: target.href } }
}

/** Doorkeeper's `by_uid_and_secret` (lib/doorkeeper/models/application_mixin.rb): only a public client needs no secret. */
function knowsClient({ client }: OAuthState, form: Record<string, string>): boolean {
  const { client_id: id, client_secret: secret = '' } = form
  return id === client.id && (secret === '' ? !client.confidential : secret === client.secret)
}

function exchange(state: OAuthState, form: Record<string, string>): FullReply {
  const { tokens, client } = state
  const grant = form['grant_type']
  if (grant === 'urn:ietf:params:oauth:grant-type:device_code') return ofDevice(state, form)
  if (grant === 'authorization_code') {
    // Its client is checked before its code (lib/doorkeeper/oauth/authorization_code_request.rb).
    if (!knowsClient(state, form)) return refused('invalid_client')
    const found = state.codes.get(form['code'] ?? '')
    state.codes.delete(form['code'] ?? '')
    const challenge = createHash('sha256')
      .update(form['code_verifier'] ?? '')
      .digest('base64url')
    const fits =
      found?.redirectUri === form['redirect_uri'] && [null, challenge].includes(found?.challenge ?? null)
    return found && fits ? issue(state, found.username, found.scope) : refused('invalid_grant')
  }
  if (grant !== 'refresh_token') return refused('unsupported_grant_type')
  // The new pair ends the old one, access token and all.
  const [known, old] = [...tokens].find(([, each]) => each.refresh === form['refresh_token']) ?? []
  // The token is checked before the client (lib/doorkeeper/oauth/refresh_token_request.rb).
  if (known === undefined || !old || old.revoked) return refused('invalid_grant')
  if (!knowsClient(state, form)) return refused('invalid_client')
  if (old.clientId !== client.id) return refused('invalid_grant')
  old.revoked = true
  return issue(state, old.username, old.scopes.join(' '))
}

function issue({ tokens, client }: OAuthState, username: string, scope: string): FullReply {
  const [access, refresh] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')]
  const token: GitLabToken = {
    kind: 'oauth',
    username,
    scopes: scope.split(' '),
    ends: Date.now() + LIFETIME * 1000,
    refresh,
    clientId: client.id,
  }
  tokens.set(access, token)
  const created_at = Math.floor(Date.now() / 1000)
  const pair = { access_token: access, token_type: 'Bearer', expires_in: LIFETIME, refresh_token: refresh }
  return { body: { ...pair, scope, created_at } }
}

/** The client authenticates itself (request/device_authorization.rb of doorkeeper-device_authorization_grant). */
function deviceCodes(state: OAuthState, form: Record<string, string>, request: Received): FullReply {
  const { devices, noDevices } = state
  // app/controllers/oauth/device_codes_controller.rb of a913a36c8abd renders nothing.
  if (noDevices) return { status: 204 }
  if (!knowsClient(state, form)) return refused('invalid_client')
  const [code, userCode] = [randomBytes(32).toString('base64url'), '0A44L90H']
  const ends = Date.now() + DEVICE_LIFETIME * 1000
  devices.set(code, { userCode, scope: form['scope'] ?? '', ends, says: 'pending', asked: 0 })
  const [host] = valuesOf(request, 'host')
  const verification_uri = `http://${host}/oauth/device`
  const uris = { verification_uri, verification_uri_complete: `${verification_uri}?user_code=${userCode}` }
  return {
    body: { device_code: code, user_code: userCode, ...uris, expires_in: DEVICE_LIFETIME, interval: 1 },
  }
}

function ofDevice(state: OAuthState, form: Record<string, string>): FullReply {
  if (!knowsClient(state, form)) return refused('invalid_client')
  const found = state.devices.get(form['device_code'] ?? '')
  if (!found) return refused('invalid_grant')
  if (found.ends <= Date.now()) return refused('expired_token')
  found.asked++
  if (found.says === 'pending') return refused('authorization_pending')
  state.devices.delete(form['device_code'] ?? '')
  return found.says === 'denied' ? refused('access_denied') : issue(state, 'mona', found.scope)
}

/** RFC 7009: an unknown token is no error, one of another client is. */
function revoke(state: OAuthState, form: Record<string, string>): FullReply {
  if (!knowsClient(state, form)) return refused('unauthorized_client', 403)
  const text = form['token'] ?? ''
  const token = state.tokens.get(text) ?? [...state.tokens.values()].find(({ refresh }) => refresh === text)
  if (token && token.clientId !== state.client.id)
    return token.kind === 'oauth' ? refused('unauthorized_client', 403) : { body: {} }
  if (token) token.revoked = true
  return { body: {} }
}

function info({ tokens }: OAuthState, request: Received): FullReply {
  const [bearer = ''] = valuesOf(request, 'authorization')
  const token = tokens.get(bearer.replace(/^Bearer /i, ''))
  const isLive = token?.kind === 'oauth' && !token.revoked && (token.ends ?? 0) > Date.now()
  if (!isLive) return refused('invalid_token', 401)
  const expires_in = Math.floor(((token.ends ?? 0) - Date.now()) / 1000)
  const common = { resource_owner_id: 1, application: { uid: token.clientId }, created_at: 0 }
  const old = { scopes: token.scopes, expires_in_seconds: expires_in }
  return { body: { ...common, scope: token.scopes, expires_in, ...old } }
}
