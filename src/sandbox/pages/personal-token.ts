import { html } from 'hono/html'
import { SCOPES } from '../oauth/scopes.js'
import { sandboxPage } from './layout.js'

/** Page with the form for a personal access token. `token` is the form's anti-forgery token; 422: the last one had expired. */
export function newTokenPage(token: string, status: 200 | 422 = 200): Promise<Response> {
  const title = 'New personal access token'
  const page = {
    title,
    formAction: "'self'",
    body: html`<h1>${title}</h1>
      ${status === 422 ? html`<p role="alert"><strong>The form was too old. Send it again.</strong></p>` : ''}
      <form method="post" action="/settings/tokens" class="list">
        <input type="hidden" name="authenticity_token" value="${token}" />
        <p>
          <label
            ><input type="radio" name="kind" value="classic" checked /> Classic, with these scopes:</label
          >
          ${Object.entries(SCOPES).map(
            ([scope, meaning]) =>
              html`<label>
                <input type="checkbox" name="scope" value="${scope}" /> <code>${scope}</code>
                <small>${meaning}</small>
              </label>`,
          )}
        </p>
        <p>
          <label><input type="radio" name="kind" value="write" /> Fine-grained, may read and write</label>
          <label><input type="radio" name="kind" value="read" /> Fine-grained, may only read</label>
        </p>
        <button class="go">Generate token</button>
      </form>`,
  }
  return sandboxPage(page, status)
}

/** Page that shows a token, the only time. */
export function shownTokenPage(token: string): Promise<Response> {
  const title = 'Your personal access token'
  return sandboxPage({
    title,
    body: html`<h1>${title}</h1>
      <p><code id="token">${token}</code></p>
      <p>Copy it now: it is not shown again. It ends with the sandbox.</p>`,
  })
}
