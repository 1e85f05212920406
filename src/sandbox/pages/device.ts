import { html } from 'hono/html'
import type { DeviceRequest } from '../oauth/device-codes.js'
import { OWNER } from '../seed.js'
import { consentCard } from './consent.js'
import { sandboxPage } from './layout.js'

const REFUSALS = {
  unknown: 'No device waits for this code. Check it, or ask the device for another one.',
  too_many: 'Too many codes were entered. Wait an hour.',
}

/** Page on which the user enters the code that the device shows. */
export function enterCodePage(refusal?: keyof typeof REFUSALS): Promise<Response> {
  const page = {
    title: 'Device activation',
    formAction: "'self'",
    body: html`<div class="narrow">
      <h1 class="center">Device activation</h1>
      <section class="card">
        <p>Enter the code shown by the program that wants to sign in.</p>
        ${refusal ? html`<p role="alert"><strong>${REFUSALS[refusal]}</strong></p>` : ''}
        <form method="post" action="/login/device" class="entry">
          <input
            name="user_code"
            aria-label="Code"
            placeholder="XXXX-XXXX"
            maxlength="9"
            autocomplete="off"
            autofocus
            required
          />
          <button class="go">Continue</button>
        </form>
      </section>
    </div>`,
  }
  return sandboxPage(page, refusal && (refusal === 'unknown' ? 422 : 429))
}

/** Page that asks for the user's consent. `token` is the form's anti-forgery token. */
export function deviceConsentPage({ clientId, scopes, userCode }: DeviceRequest, token: string) {
  const warning = `Continue only if your own screen shows ${userCode}. Otherwise someone else would sign in as you.`
  return sandboxPage({
    title: `Authorize ${clientId}`,
    formAction: "'self'",
    body: html`<div class="narrow">
      ${consentCard({ clientId, scopes, login: OWNER, token, action: '/login/device/confirmation' })}
      <p class="soft center">${warning}</p>
    </div>`,
  })
}

export function deviceDonePage(decision: 'granted' | 'denied'): Promise<Response> {
  const title = decision === 'granted' ? 'You are signed in' : 'You were not signed in'
  const next = decision === 'granted' ? 'The program continues by itself.' : 'The program gets no access.'
  return sandboxPage({
    title,
    body: html`<h1>${title}</h1>
      <p>${next} You can close this page.</p>`,
  })
}
