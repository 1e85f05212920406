import { createHash, createPrivateKey, sign } from 'node:crypto'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/sandbox.js'
import { grantAt } from '../../src/testing/sandbox.js'

export const CLIENT = { id: 'relay-test', secret: 'client secret ✓' }
export const REDIRECT_URI = 'http://127.0.0.1:8787/auth/sandbox/callback'
export const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
export const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')
/** 2026-05-04T03:02:01Z */
export const NOW = 1_777_863_721_000

/** Sandbox with a stopped clock, at {@link NOW} unless `options` say otherwise. */
export function start(options: Partial<SandboxOptions> = {}): Promise<Sandbox> {
  return startSandbox({ client: CLIENT, clock: () => NOW, ...options })
}

/** Authorize URL of a valid request, with `changes` that replace or (null) remove parameters. */
export function authorizeUrl({ url }: Sandbox, changes: Record<string, string | null> = {}): string {
  const query = {
    client_id: CLIENT.id,
    redirect_uri: REDIRECT_URI,
    scope: 'public_repo read:user',
    state: 'st&te=é',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    ...changes,
  }
  return `${url}/login/oauth/authorize?${new URLSearchParams(withoutNull(query)).toString()}`
}

/** Opens the consent page and sends its form, like a browser without script. */
export async function consent(
  sandbox: Sandbox,
  changes: Record<string, string | null> = {},
  decision = '1',
): Promise<Response> {
  const page = await (await fetch(authorizeUrl(sandbox, changes))).text()
  const [, token = ''] = /name="authenticity_token" value="([^"]+)"/.exec(page) ?? []
  return postConsent(sandbox, { authenticity_token: token, authorize: decision })
}

export function postConsent({ url }: Sandbox, fields: Record<string, string>): Promise<Response> {
  const body = new URLSearchParams(fields)
  return fetch(`${url}/login/oauth/authorize`, { method: 'POST', body, redirect: 'manual' })
}

/** Target of a redirect: the address, and its query as an object. */
export function landing(response: Response): { status: number; to: string; query: Record<string, string> } {
  const location = new URL(response.headers.get('location') ?? '')
  return {
    status: response.status,
    to: location.origin + location.pathname,
    query: Object.fromEntries(location.searchParams),
  }
}

export async function getCode(
  sandbox: Sandbox,
  changes: Record<string, string | null> = {},
): Promise<string> {
  return landing(await consent(sandbox, changes)).query['code'] ?? ''
}

/** Token request for `code`, with `changes` that replace or (null) remove parameters. */
export function redeem(
  { url }: Sandbox,
  code: string,
  changes: Record<string, string | null> = {},
  headers: Record<string, string> = { accept: 'application/json' },
): Promise<Response> {
  const fields = {
    client_id: CLIENT.id,
    client_secret: CLIENT.secret,
    code,
    redirect_uri: REDIRECT_URI,
    code_verifier: VERIFIER,
    ...changes,
  }
  const body = new URLSearchParams(withoutNull(fields))
  return fetch(`${url}/login/oauth/access_token`, { method: 'POST', headers, body })
}

/** Request headers with a valid token. */
export async function signIn(sandbox: Sandbox, scope = 'public_repo'): Promise<{ authorization: string }> {
  const { access_token: token } = await grantAt(sandbox.url, CLIENT, scope)
  return { authorization: `Bearer ${token}` }
}

/** Calls the REST API; `body` is sent as JSON. */
export function call(
  { url }: Sandbox,
  request: string,
  headers: Record<string, string>,
  body?: unknown,
): Promise<Response> {
  const [method = '', path = ''] = request.split(' ')
  return fetch(`${url}/api/v3${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
}

/** JSON of a response whose shape the test knows. */
export async function json<T>(answer: Response | Promise<Response>): Promise<T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a wrong shape fails the test
  return (await (await answer).json()) as T
}

/** Parts of a response that most tests compare. */
export async function answerOf(response: Response): Promise<{ status: number; body: unknown }> {
  return { status: response.status, body: await response.json() }
}

/** GitHub's error body. */
export function refusal(status: number, message: string, errors?: readonly object[]): object {
  const documentation_url = 'https://docs.github.com/rest'
  return {
    status,
    body: { message, ...(errors && { errors }), documentation_url, status: String(status) },
  }
}

function withoutNull(fields: Record<string, string | null>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
  )
}

export const REDIRECT = 'http://127.0.0.1:8787/setup/callback'

/** What the conversion of a code answers. */
export interface Converted {
  readonly id: number
  readonly slug: string
  readonly client_id: string
  readonly client_secret: string
  readonly webhook_secret: string | null
  readonly pem: string
}

/** A manifest with `changes`; undefined removes a field. */
export function manifest(changes: Record<string, unknown> = {}): string {
  return JSON.stringify({
    name: 'My relay',
    url: 'https://example.com/',
    redirect_url: REDIRECT,
    callback_urls: ['http://127.0.0.1:8787/auth/sandbox/callback'],
    default_events: ['issue_comment'],
    default_permissions: { issues: 'write', repository_hooks: 'write' },
    ...changes,
  })
}

/** Posts a form like a browser that follows no redirect. */
export function post({ url }: Sandbox, path: string, fields: Record<string, string>): Promise<Response> {
  return fetch(url + path, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' })
}

export async function tokenIn(page: Response | Promise<Response>): Promise<string> {
  const text = await (await page).text()
  return /name="authenticity_token" value="([^"]+)"/.exec(text)?.[1] ?? ''
}

/** Sends a manifest and agrees to it; the redirect has the code. */
export async function register(
  sandbox: Sandbox,
  text: string,
  name = 'My relay',
  account = '',
): Promise<URL> {
  const page = post(sandbox, `${account}/settings/apps/new?state=st%26te`, { manifest: text })
  const answer = await post(sandbox, '/settings/apps', { authenticity_token: await tokenIn(page), name })
  return new URL(answer.headers.get('location') ?? '')
}

export function convert(sandbox: Sandbox, { searchParams }: URL): Promise<Response> {
  return call(sandbox, `POST /app-manifests/${searchParams.get('code')}/conversions`, {})
}

export async function makeApp(
  sandbox: Sandbox,
  changes: Record<string, unknown> = {},
  name?: string,
): Promise<Converted> {
  return json<Converted>(convert(sandbox, await register(sandbox, manifest(changes), name)))
}

export async function install(sandbox: Sandbox, { slug }: Converted): Promise<Response> {
  const page = fetch(`${sandbox.url}/apps/${slug}/installations/new`)
  return post(sandbox, `/apps/${slug}/installations`, { authenticity_token: await tokenIn(page) })
}

/** Token of an App (RFC 7515): `claims` and `header` replace the usual ones. */
export function jwt(
  { id, pem }: Converted,
  now: number,
  claims: Record<string, unknown> = {},
  header: Record<string, unknown> = {},
): { authorization: string } {
  const seconds = Math.floor(now / 1000)
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const usual = { iat: seconds - 60, exp: seconds + 540, iss: id }
  const signed = `${part({ alg: 'RS256', typ: 'JWT', ...header })}.${part({ ...usual, ...claims })}`
  const signature = sign('RSA-SHA256', Buffer.from(signed), createPrivateKey(pem)).toString('base64url')
  return { authorization: `Bearer ${signed}.${signature}` }
}
