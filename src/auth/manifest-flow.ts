import { randomBytes } from 'node:crypto'
import type { Context } from 'hono'
import { generateCookie, getCookie } from 'hono/cookie'
import { html } from 'hono/html'
import type { Command } from '../base/command-line.js'
import { aborted, type Cancellable, deadline } from '../base/wait.js'
import { RelayError, toRelayError } from '../base/errors.js'
import type { Log } from '../base/log.js'
import type { AppRequest, AppsApi, RegisteredApp } from '../codehost/host.js'
import type { HttpEnv } from '../http/body.js'
import { htmlPage } from '../http/html.js'
import { listen } from '../http/listen.js'
import { hostCheck } from '../http/host-check.js'
import { createRouter } from '../http/router.js'
import { stateOf } from './sign-in.js'

/** Time for a person to register the App: 15 minutes, in milliseconds. GitHub's own limit is an hour. */
const FLOW_LIMIT = 900_000
/** Grace period for a page that is being sent when the flow ends, in milliseconds. */
const GRACE_MS = 2_000

const HOST = '127.0.0.1'
const CALLBACK = '/setup/callback'
const COOKIE = 'relay_setup'

export interface ManifestFlowOptions extends Cancellable {
  readonly apps: AppsApi
  /** Web address of the code host. */
  readonly providerUrl: string
  /** Undefined: the App belongs to the user's account. */
  readonly organization: string | undefined
  readonly app: Omit<AppRequest, 'redirectUrl'>
  readonly log: Log
  readonly command: Command
  /** Called with the address to open in a browser. */
  readonly onListening: (address: string) => Promise<void>
  /** Stores the registered App. The browser's page waits for it. */
  readonly store: (registered: RegisteredApp) => Promise<void>
}

/**
 * Registers an App by the manifest flow
 * (https://docs.github.com/apps/sharing-github-apps/registering-a-github-app-from-a-manifest). The flow has its own
 * listener on a free loopback port: the running service, which a proxy may expose to the internet, must have no page
 * that installs a client. A callback counts once, with the state and the cookie of this flow; any other changes
 * nothing.
 * @throws RelayError as `AppsApi.convert` and `store`; `timed_out` after 15 minutes; `unavailable` if it cannot listen;
 * the signal's reason
 */
export async function runManifestFlow(options: ManifestFlowOptions): Promise<RegisteredApp> {
  const { apps, organization, app, log, onListening, command } = options
  const again = command('setup')
  // A secret in the start address, so that no other page of this browser can begin the flow.
  const key = random()
  const secret = random()
  const answered = new AbortController()
  let outcome: Promise<RegisteredApp> | undefined
  let origin = ''

  /** The start page. It can be opened again after an unfinished flow. */
  const start = async (): Promise<Response> => {
    const action = `${apps.page(organization)}?state=${stateOf(secret)}`
    const manifest = apps.manifest({ ...app, redirectUrl: origin + CALLBACK })
    const page = await startPage(action, manifest, options)
    const cookie = generateCookie(COOKIE, secret, { httpOnly: true, sameSite: 'Lax', path: CALLBACK })
    page.headers.append('Set-Cookie', cookie)
    return page
  }
  /** Not stopped by Ctrl-C: the App exists, and its secrets are shown only once. */
  const register = async (code: string): Promise<RegisteredApp> => {
    const registered = await apps.convert(code)
    await options.store(registered)
    return registered
  }
  const answer = async (c: Context<HttpEnv>): Promise<Response> => {
    const { searchParams } = new URL(c.req.url)
    const [code, ...more] = searchParams.getAll('code')
    const isOurs = getCookie(c, COOKIE) === secret && searchParams.getAll('state').join() === stateOf(secret)
    if (!isOurs || outcome || !code || more.length > 0) return uninvitedPage(again)
    outcome = register(code)
    answered.abort()
    try {
      return await donePage((await outcome).installUrl)
    } catch (error) {
      return failedPage(toRelayError(error).message, again)
    }
  }

  const router = createRouter({ hostAllowed: hostCheck({ host: HOST, allowed: [] }), log })
    .get(`/setup/${key}`, start)
    .get(CALLBACK, answer)
  const listener = await listen(router.fetch, { host: HOST, port: 0, log, limits: { grace: GRACE_MS } })
  origin = listener.url
  try {
    const limit = deadline(FLOW_LIMIT, options.signal)
    await onListening(`${origin}/setup/${key}`)
    await Promise.race([aborted(answered.signal), aborted(limit)])
    if (outcome) return await outcome
    options.signal?.throwIfAborted()
    throw new RelayError('timed_out', `No App was registered within 15 minutes. Run ${again} again`)
  } finally {
    await listener.close()
  }
}

function random(): string {
  return randomBytes(32).toString('base64url')
}

/** Page with a button that sends the manifest to the code host at `action`. It needs no script. */
function startPage(
  action: string,
  manifest: string,
  { providerUrl, app }: ManifestFlowOptions,
): Promise<Response> {
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
function donePage(installUrl: string): Promise<Response> {
  return htmlPage({
    title: 'The App is registered',
    body: html`<h1>The App is registered</h1>
      <p>relay has stored its client and its keys.</p>
      <p><a href="${installUrl}">Install it on your repositories</a>, then go back to your terminal.</p>`,
  })
}

/** Page for a failure, which the terminal reports too. */
function failedPage(message: string, again: string): Promise<Response> {
  const body = html`<h1>The App was not stored</h1>
    <p>${message}</p>
    <p>Your terminal says the same. Delete the App at the code host, and run <code>${again}</code> again.</p>`
  return htmlPage({ title: 'The App was not stored', body }, 502)
}

/** Page for a callback that does not belong to this flow. */
function uninvitedPage(again: string): Promise<Response> {
  const body = html`<h1>Nothing was stored</h1>
    <p>This answer was used before, or belongs to another browser or another <code>${again}</code>.</p>
    <p>Start with the address that <code>${again}</code> printed, and finish in the same browser.</p>`
  return htmlPage({ title: 'Nothing was stored', body }, 400)
}
