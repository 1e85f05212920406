import { createHash, randomBytes } from 'node:crypto'
import { type FullReply, type Received, receiver, type Reply } from './receiver.js'

/** The OAuth application that it knows. The secret has what a form has to escape. */
export const OAUTH_CLIENT = {
  id: '8e2b5c1a-7f3d-4b6e-9a10-2c4d6e8f0a1b',
  secret: 'the-client-secret_with.marks~ and spaces',
}
export const ACCESS_TOKEN = 'gho_the-access-token'

const TOKEN_PATH = '/login/oauth/access_token'

/**
 * An authorization server with GitHub's paths, whose token endpoint checks client, code, redirect URI and PKCE verifier, and
 * answers something else when told to.
 */
export type AuthorizationServer = Awaited<ReturnType<typeof authorizationServer>>

interface Code {
  readonly clientId: string | null
  readonly redirectUri: string | null
  readonly challenge: string | null
}

export async function authorizationServer() {
  const codes = new Map<string, Code>()
  const requests: { readonly form: Record<string, string> }[] = []
  const redeem = (form: Record<string, string>): FullReply => {
    const code = codes.get(form['code'] ?? '')
    codes.delete(form['code'] ?? '')
    const isRenewal = here.renews && form['grant_type'] === 'refresh_token'
    const refused = isRenewal ? undefined : refusal(form, code)
    return refused === undefined
      ? { body: { access_token: ACCESS_TOKEN, token_type: 'bearer', ...here.grant } }
      : { status: here.refusalStatus, body: { error: refused, error_description: 'no' } }
  }
  const server = await receiver((request) => {
    if (request.path === '/api/v3/user' && here.account !== undefined)
      return { body: { login: here.account } }
    if (request.path !== TOKEN_PATH) return here.api(request)
    const form = Object.fromEntries(new URLSearchParams(request.body.toString()))
    requests.push({ form })
    return here.misbehave ?? redeem(form)
  })
  const here = {
    url: server.url,
    issuer: `${server.url}/login/oauth`,
    /** All requests to the token endpoint, oldest first. */
    requests,
    /** Members of the answer to a good request, besides access_token and token_type. */
    grant: {} as Record<string, unknown>,
    /** How a refusal is answered: GitHub uses status 200, the RFC 400. */
    refusalStatus: 400,
    /** Answers instead of the endpoint, once the request has been read. */
    misbehave: undefined as Reply | undefined,
    /** Whether a refresh token is exchanged, for the same grant. */
    renews: false,
    /** Whose the tokens are that it gives; undefined: it has no API that says so. */
    account: undefined as string | undefined,
    /** Answers every other request. */
    api: (_request: Received): Reply => ({ status: 404, body: { message: 'Not Found' } }),
    /** The user agrees: the query with which the browser comes back. */
    approve(location: string): URLSearchParams {
      const asked = new URL(location).searchParams
      const code = randomBytes(10).toString('hex')
      codes.set(code, {
        clientId: asked.get('client_id'),
        redirectUri: asked.get('redirect_uri'),
        challenge: asked.get('code_challenge'),
      })
      return new URLSearchParams({ code, state: asked.get('state') ?? '', iss: here.issuer })
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
  return here
}

/** RFC 7636 section 4.2. */
function s256(verifier: string): string {
  return createHash('sha256').update(verifier, 'ascii').digest('base64url')
}

function refusal(form: Record<string, string>, code: Code | undefined): string | undefined {
  if (form['client_id'] !== OAUTH_CLIENT.id || form['client_secret'] !== OAUTH_CLIENT.secret)
    return 'invalid_client'
  if (form['grant_type'] !== 'authorization_code') return 'unsupported_grant_type'
  if (!code || code.clientId !== form['client_id']) return 'bad_verification_code'
  if (code.redirectUri !== form['redirect_uri']) return 'redirect_uri_mismatch'
  return s256(form['code_verifier'] ?? '') === code.challenge ? undefined : 'invalid_grant'
}
