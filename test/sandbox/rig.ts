import { createHash } from 'node:crypto'
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
