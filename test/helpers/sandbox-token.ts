import type { Sandbox } from '../../src/sandbox/start.js'

/** The OAuth application a sandbox was started with. */
export interface SandboxClient {
  readonly id: string
  readonly secret: string
}

/** What the token endpoint answers; a sandbox whose tokens end gives a refresh token too. */
export interface SandboxGrant {
  readonly access_token: string
  readonly refresh_token?: string
}

/** An access token; see {@link sandboxGrant}. */
export async function sandboxToken(sandbox: Sandbox, client: SandboxClient, scope?: string): Promise<string> {
  return (await sandboxGrant(sandbox, client, scope)).access_token
}

/** Tokens, got as a browser and an application get them: the consent page, its form, the token endpoint. */
export async function sandboxGrant(
  { url }: Sandbox,
  client: SandboxClient,
  scope = 'repo',
): Promise<SandboxGrant> {
  const redirectUri = 'http://127.0.0.1:1/callback'
  const query = new URLSearchParams({ client_id: client.id, redirect_uri: redirectUri, scope })
  const authorize = `${url}/login/oauth/authorize`
  const page = await (await fetch(`${authorize}?${query.toString()}`)).text()
  const [, authenticity = ''] = /name="authenticity_token" value="([^"]+)"/.exec(page) ?? []
  const form = new URLSearchParams({ authenticity_token: authenticity, authorize: '1' })
  const consented = await fetch(authorize, { method: 'POST', body: form, redirect: 'manual' })
  const code = new URL(consented.headers.get('location') ?? '').searchParams.get('code') ?? ''
  const redeem = { client_id: client.id, client_secret: client.secret, code, redirect_uri: redirectUri }
  const answer = await fetch(`${url}/login/oauth/access_token`, {
    method: 'POST',
    headers: { accept: 'application/json' },
    body: new URLSearchParams(redeem),
  })
  const grant: SandboxGrant = JSON.parse(await answer.text())
  return grant
}
