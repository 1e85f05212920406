import { html } from 'hono/html'
import type { AuthorizeRequest } from '../oauth/codes.js'
import { SCOPES } from '../oauth/scopes.js'
import { sandboxPage } from './layout.js'

/** Page that asks for the user's consent. `token` is the form's anti-forgery token. */
export function consentPage(request: AuthorizeRequest, login: string, token: string): Promise<Response> {
  const { clientId, scopes, redirectUri } = request
  return sandboxPage({
    title: `Authorize ${clientId}`,
    // Chromium applies form-action to every redirect after a form, and the application may redirect anywhere. This is
    // safe: the form's own address is fixed, and a page without script cannot change it.
    formAction: "'self' http: https:",
    body: html`<div class="narrow">
      ${consentCard({ clientId, scopes, login, token, action: '/login/oauth/authorize' })}
      <p class="soft center">Either way you return to<br /><code>${redirectUri}</code></p>
    </div>`,
  })
}

export interface Consent {
  readonly clientId: string
  readonly scopes: readonly string[]
  readonly login: string
  /** The form's anti-forgery token. */
  readonly token: string
  /** Path that the form is sent to. */
  readonly action: string
}

/** Names the application and what it wants, with a button for each decision. */
export function consentCard({ clientId, scopes, login, token, action }: Consent) {
  return html`<p class="joined" aria-hidden="true">
      <b>${clientId.slice(0, 1).toUpperCase()}</b>→<b>${login.slice(0, 1).toUpperCase()}</b>
    </p>
    <h1 class="center">Authorize ${clientId}</h1>
    <section class="card">
      <p><strong>${clientId}</strong> wants to use your account <strong>${login}</strong> to:</p>
      <ul>
        ${scopes.map((scope) => html`<li>${SCOPES[scope] ?? 'Have other access'} <small>(${scope})</small></li>`)}
        ${scopes.length === 0 ? html`<li>Read public information</li>` : ''}
      </ul>
      <form method="post" action="${action}">
        <input type="hidden" name="authenticity_token" value="${token}" />
        <button class="go" name="authorize" value="1">Authorize</button>
        <button name="authorize" value="0">Cancel</button>
      </form>
    </section>`
}

/** Page that explains why the sign-in failed. */
export function refusalPage(status: 400 | 404 | 422, why: string): Promise<Response> {
  const title = 'This sign-in cannot continue'
  return sandboxPage(
    {
      title,
      body: html`<h1>${title}</h1>
        <p>${why}</p>`,
    },
    status,
  )
}
