import { html } from 'hono/html'
import type { App, Registration } from '../apps/apps.js'
import { OWNER } from '../seed.js'
import { sandboxPage } from './layout.js'

/** Page on which the user names and registers the App of a manifest. `token` is the form's anti-forgery token. */
export function newAppPage(
  { manifest, owner }: Registration,
  token: string,
  refusal?: string,
): Promise<Response> {
  const title = 'Create GitHub App'
  const { name, hook, permissions, events, redirectUrl } = manifest
  const page = {
    title,
    // Chromium applies form-action to the redirect too, which goes to another port.
    formAction: "'self' http: https:",
    body: html`<h1>${title}</h1>
      <p>A program asks to register an App in the account <strong>${owner}</strong>.</p>
      ${refusal === undefined ? '' : html`<p role="alert"><strong>${refusal}</strong></p>`}
      <table class="plain">
        ${Object.entries(permissions).map(([permission, access]) => row(`Permission ${permission}`, access))}
        ${row('Events', events.join(', ') || 'none')}
        ${row('Webhook', hook ? `${hook.url}${hook.active ? '' : ' (inactive)'}` : 'none')}
      </table>
      <form method="post" action="/settings/apps" class="entry">
        <input type="hidden" name="authenticity_token" value="${token}" />
        <input name="name" aria-label="Name" value="${name}" maxlength="34" autocomplete="off" required />
        <button class="go">${title} for ${owner}</button>
      </form>
      <p class="soft">You return to <code>${redirectUrl}</code></p>`,
  }
  return sandboxPage(page, refusal === undefined ? 200 : 422)
}

/** Page that explains why no App can be registered. */
export function appRefusalPage(why: string): Promise<Response> {
  const title = 'No App was registered'
  return sandboxPage(
    {
      title,
      body: html`<h1>${title}</h1>
        <p>${why}</p>`,
    },
    422,
  )
}

/** Page on which the user installs an App. `token` is the form's anti-forgery token. */
export function installPage({ manifest, slug }: App, token: string): Promise<Response> {
  return sandboxPage({
    title: `Install ${manifest.name}`,
    formAction: "'self'",
    body: html`<div class="narrow">
      <h1 class="center">Install ${manifest.name}</h1>
      <section class="card">
        <p>On all repositories of <strong>${OWNER}</strong>, with these permissions:</p>
        <ul>
          ${Object.entries(manifest.permissions).map(([name, access]) => html`<li>${name}: ${access}</li>`)}
        </ul>
        <form method="post" action="/apps/${slug}/installations">
          <input type="hidden" name="authenticity_token" value="${token}" />
          <button class="go">Install</button>
        </form>
      </section>
    </div>`,
  })
}

export function installedPage({ manifest }: App): Promise<Response> {
  const title = `${manifest.name} is installed`
  return sandboxPage({
    title,
    body: html`<h1>${title}</h1>
      <p>On all repositories of ${OWNER}.</p>`,
  })
}

function row(name: string, value: string) {
  return html`<tr>
    <td>${name}</td>
    <td>${value}</td>
  </tr>`
}
