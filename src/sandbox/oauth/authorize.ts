import { Hono, type Context } from 'hono'
import type { HttpEnv } from '../../http/body.js'
import { consentPage, refusalPage } from '../pages/consent.js'
import { OWNER } from '../seed.js'
import { readAuthorizeRequest } from './authorize-request.js'
import type { Clients } from './clients.js'
import type { AuthorizeRequest, Codes } from './codes.js'
import { readForm } from './form.js'

export interface AuthorizeParts {
  readonly clients: Clients
  readonly codes: Codes
  readonly issuer: () => string
}

/** Consent page: GET shows it, POST submits its form. */
export function authorizeRoutes({ clients, codes, issuer }: AuthorizeParts): Hono<HttpEnv> {
  return new Hono<HttpEnv>()
    .get('/login/oauth/authorize', (c) => {
      const request = readAuthorizeRequest(new URL(c.req.url).searchParams, clients)
      if (!('to' in request)) return consentPage(request, OWNER, codes.openConsent(request))
      if (request.to === 'user') return refusalPage(request.status, request.why)
      return back(c, request.request, { error: request.error, error_description: request.why })
    })
    .post('/login/oauth/authorize', async (c) => {
      const form = await readForm(c)
      const request = codes.takeConsent(form.get('authenticity_token') ?? '')
      if (!request)
        return refusalPage(422, 'This page was used before, or is older than 10 minutes. Start again.')
      if (form.get('authorize') === '1') return back(c, request, { code: codes.issue(request) })
      return back(c, request, {
        error: 'access_denied',
        error_description: 'The user has denied your application access.',
      })
    })

  /** Redirects to the application. `iss` names the sender (RFC 9207). */
  function back(c: Context, request: AuthorizeRequest, answer: Record<string, string>): Response {
    const location = new URL(request.redirectUri)
    for (const [name, value] of Object.entries(answer)) location.searchParams.set(name, value)
    if (request.state !== undefined) location.searchParams.set('state', request.state)
    location.searchParams.set('iss', issuer())
    return c.redirect(location.href)
  }
}
