import { html } from 'hono/html'
import { htmlPage } from '../../http/html.js'
import type { AuthorizeRequest } from '../oauth/codes.js'

/** What a scope lets the application do, in the user's words. */
const MEANINGS: Record<string, string> = {
  public_repo: 'Comment, react and merge in your public repositories',
  repo: 'Comment, react and merge in all your repositories',
  'read:user': 'Read your profile',
}

/** Asks the user to agree; `token` is the anti-forgery token that the form brings back. */
export function consentPage(request: AuthorizeRequest, login: string, token: string): Promise<Response> {
  return htmlPage({
    title: `Authorize ${request.clientId}`,
    // Chromium applies form-action to every redirect that follows the form, and the app may redirect on to anywhere.
    formAction: "'self' http: https:",
    body: html`
      <h1>Authorize ${request.clientId}</h1>
      <p>
        The application <strong>${request.clientId}</strong> wants to act for <strong>${login}</strong> here:
      </p>
      <ul>
        ${request.scopes.map((scope) => html`<li>${MEANINGS[scope] ?? 'Other access'} (<code>${scope}</code>)</li>`)}
      </ul>
      <form method="post" action="/login/oauth/authorize">
        <input type="hidden" name="authenticity_token" value="${token}" />
        <button name="authorize" value="1">Authorize</button>
        <button name="authorize" value="0">Cancel</button>
      </form>
      <p>You return to <code>${request.redirectUri}</code></p>
    `,
  })
}

/** Tells the user why there is nothing to agree to. */
export function refusalPage(status: 400 | 404 | 422, why: string): Promise<Response> {
  const body = html`<h1>This sign-in cannot go on</h1>
    <p>${why}</p>`
  return htmlPage({ title: 'This sign-in cannot go on', body }, status)
}
