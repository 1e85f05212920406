import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { OAuthEndpoints } from '../../src/providers/provider.js'

/** What the token endpoint saw. */
export interface TokenRequest {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly contentType: string | undefined
  readonly accept: string | undefined
  readonly authorization: string | undefined
  readonly form: Record<string, string>
}

type Responder = (response: ServerResponse) => void

interface Code {
  readonly clientId: string | null
  readonly redirectUri: string | null
  readonly challenge: string | null
}

export const CLIENT_ID = '8e2b5c1a-7f3d-4b6e-9a10-2c4d6e8f0a1b'
export const CLIENT_SECRET = 'the-client-secret_with.marks~ and spaces'
export const ACCESS_TOKEN = 'gho_the-access-token'

/**
 * An authorization server over real HTTP whose token endpoint checks client, code, redirect URI and PKCE verifier, or client
 * and refresh token, and answers something else when told to.
 */
export class AuthorizationServer implements AsyncDisposable {
  /** All requests to the token endpoint, oldest first. */
  readonly requests: TokenRequest[] = []
  /** Members of the answer to a good request, besides access_token and token_type. */
  grant: Record<string, unknown> = {}
  /** The refresh tokens that work; each once. */
  readonly refreshTokens = new Set<string>()
  /** How a refusal is answered: GitHub uses status 200, the RFC 400. */
  refusalStatus = 400
  /** Answers instead of the endpoint, once the request has been read. */
  misbehave: Responder | undefined
  /** Its code, if the endpoint refused the last request. */
  refused: string | undefined
  readonly #codes = new Map<string, Code>()
  readonly #server: Server
  readonly url: string

  static async start(): Promise<AuthorizationServer> {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new AuthorizationServer(server)
  }

  constructor(server: Server) {
    const address = server.address()
    if (typeof address !== 'object' || !address) throw new Error('not listening')
    this.url = `http://127.0.0.1:${address.port}`
    this.#server = server
    server.on('request', (request, response) => void this.#handle(request, response))
  }

  get endpoints(): OAuthEndpoints & { readonly issuer: string } {
    return {
      authorizationEndpoint: `${this.url}/login/oauth/authorize`,
      tokenEndpoint: `${this.url}/login/oauth/access_token`,
      issuer: `${this.url}/login/oauth`,
      scopes: ['public_repo'],
    }
  }

  /** The user agrees: the query with which the browser comes back. */
  approve(location: string): URLSearchParams {
    const asked = new URL(location).searchParams
    const code = randomBytes(10).toString('hex')
    this.#codes.set(code, {
      clientId: asked.get('client_id'),
      redirectUri: asked.get('redirect_uri'),
      challenge: asked.get('code_challenge'),
    })
    return new URLSearchParams({ code, state: asked.get('state') ?? '', iss: this.endpoints.issuer })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += String(chunk)
    const form = Object.fromEntries(new URLSearchParams(body))
    const { method, url: path, headers } = request
    const { accept, authorization, 'content-type': contentType } = headers
    this.requests.push({ method, path, contentType, accept, authorization, form })
    if (this.misbehave) this.misbehave(response)
    else this.#redeem(form, response)
  }

  #redeem(form: Record<string, string>, response: ServerResponse): void {
    const code = this.#codes.get(form['code'] ?? '')
    this.#codes.delete(form['code'] ?? '')
    const renews = this.refreshTokens.delete(form['refresh_token'] ?? '')
    this.refused = refusal(form, code, renews)
    if (this.refused)
      answerJson(this.refusalStatus, { error: this.refused, error_description: 'no' })(response)
    else answerJson(200, { access_token: ACCESS_TOKEN, token_type: 'bearer', ...this.grant })(response)
  }
}

function refusal(form: Record<string, string>, code: Code | undefined, renews: boolean): string | undefined {
  if (form['client_id'] !== CLIENT_ID || form['client_secret'] !== CLIENT_SECRET) return 'invalid_client'
  if (form['grant_type'] === 'refresh_token') return renews ? undefined : 'bad_refresh_token'
  if (form['grant_type'] !== 'authorization_code') return 'unsupported_grant_type'
  if (!code || code.clientId !== form['client_id']) return 'bad_verification_code'
  if (code.redirectUri !== form['redirect_uri']) return 'redirect_uri_mismatch'
  return s256(form['code_verifier'] ?? '') === code.challenge ? undefined : 'invalid_grant'
}

/** RFC 7636 section 4.2. */
export function s256(verifier: string): string {
  return createHash('sha256').update(verifier, 'ascii').digest('base64url')
}

export function answerJson(status: number, value: unknown): Responder {
  return answerText(status, JSON.stringify(value), 'application/json; charset=utf-8')
}

export function answerText(status: number, text: string, contentType = 'text/html'): Responder {
  return (response) => response.writeHead(status, { 'content-type': contentType }).end(text)
}
