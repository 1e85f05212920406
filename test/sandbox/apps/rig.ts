import { createPrivateKey, sign } from 'node:crypto'
import type { Sandbox } from '../../../src/sandbox/sandbox.js'
import { call, json } from '../rig.js'

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
