import { createHash } from 'node:crypto'
import { type Sandbox, type SandboxOptions, openSandbox } from '../../src/sandbox/sandbox.js'
import { sandboxToken } from '../../src/testing/sandbox.js'

export const CLIENT = { id: 'relay-test', secret: 'client secret ✓' }
export const REDIRECT_URI = 'http://127.0.0.1:8787/auth/sandbox/callback'
export const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
/** 2026-05-04T03:02:01Z */
export const NOW = 1_777_863_721_000

/** Fields of a query or form; null removes one. */
export type Fields = Readonly<Record<string, string | null>>

/** Sandbox with a stopped clock, at {@link NOW} unless `options` say otherwise. */
export function start(options: Partial<SandboxOptions> = {}): Promise<Sandbox> {
  return openSandbox({ client: CLIENT, clock: () => NOW, ...options })
}

/** Authorize URL of a valid request, with `changes`. */
export function authorizeUrl({ url }: Sandbox, changes: Fields = {}): string {
  const query = {
    client_id: CLIENT.id,
    redirect_uri: REDIRECT_URI,
    scope: 'public_repo read:user',
    state: 'st&te=é',
    code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
    code_challenge_method: 'S256',
    ...changes,
  }
  return `${url}/login/oauth/authorize?${withoutNull(query).toString()}`
}

/** Posts a form of a program, which asks for JSON. */
export function post({ url }: Sandbox, path: string, fields: Fields): Promise<Response> {
  return fetch(url + path, {
    method: 'POST',
    body: withoutNull(fields),
    headers: { accept: 'application/json' },
  })
}

/** Request headers with a valid token. */
export async function signIn(sandbox: Sandbox, scope = 'repo'): Promise<{ authorization: string }> {
  return { authorization: `Bearer ${await sandboxToken(sandbox.url, CLIENT, scope)}` }
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

export async function answerOf(answer: Promise<Response>): Promise<{ status: number; body: unknown }> {
  return { status: (await answer).status, body: await json(answer) }
}

/** GitHub's error body. */
export function refusal(status: number, message: string, errors?: readonly object[]): object {
  const documentation_url = 'https://docs.github.com/rest'
  return { status, body: { message, ...(errors && { errors }), documentation_url, status: String(status) } }
}

function withoutNull(fields: Fields): URLSearchParams {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) if (value !== null) query.append(name, value)
  return query
}
