import { html } from 'hono/html'
import { htmlPage } from '../http/html.js'
import type { AppRequest } from '../providers/registration.js'

export interface StartPage {
  /** Address of the code host that takes the manifest. */
  readonly action: string
  readonly manifest: string
  readonly providerUrl: string
  readonly app: Omit<AppRequest, 'redirectUrl'>
}

/** Page from which the user sends the manifest to the code host. A button sends it, so that the page needs no script. */
export function startPage({ action, manifest, providerUrl, app }: StartPage): Promise<Response> {
  const { name, callbackUrl, hook } = app
  return htmlPage({
    title: 'Set up relay',
    formAction: new URL(action).origin,
    body: html`<h1>Set up relay</h1>
      <section class="card">
        <p>
          relay registers an App of yours at <strong>${providerUrl}</strong>. There you can change its name.
        </p>
        <ul>
          <li>Name: <code>${name}</code></li>
          <li>Sign-ins return to <code>${callbackUrl}</code></li>
          <li>
            Its own webhook:
            ${hook ? html`<code>${hook.url}</code>${hook.active ? '' : ', inactive'}` : 'none'}
          </li>
        </ul>
        <form method="post" action="${action}">
          <input type="hidden" name="manifest" value="${manifest}" />
          <button class="go">Continue to ${new URL(providerUrl).host}</button>
        </form>
      </section>`,
  })
}

/** Page after the App was registered and stored: the next step is to install it. */
export function donePage(installUrl: string): Promise<Response> {
  return htmlPage({
    title: 'The App is registered',
    body: html`<h1>The App is registered</h1>
      <p>relay has stored its client and its keys.</p>
      <p><a href="${installUrl}">Install it on your repositories</a>, then go back to your terminal.</p>`,
  })
}

/** Page for a failure, which the terminal shows too. */
export function failedPage(message: string): Promise<Response> {
  return htmlPage(
    {
      title: 'The App was not stored',
      body: html`<h1>The App was not stored</h1>
        <p>${message}</p>
        <p>
          Your terminal says the same. Delete the App at the code host, and run
          <code>relay setup</code> again.
        </p>`,
    },
    502,
  )
}

/** Page for an answer that this flow did not ask for. */
export function uninvitedPage(): Promise<Response> {
  return htmlPage(
    {
      title: 'Nothing was stored',
      body: html`<h1>Nothing was stored</h1>
        <p>This answer was used before, or belongs to another browser or another <code>relay setup</code>.</p>
        <p>Start with the address that <code>relay setup</code> printed, and finish in the same browser.</p>`,
    },
    400,
  )
}
