import { awaitLogin, type LoginOutcome, type Reason } from '../../../auth/sign-in.js'
import { sleep } from '../../../base/abort.js'
import { RelayError } from '../../../base/errors.js'
import type { Settings } from '../../../base/settings.js'
import { createLoopbackClient } from '../../../net/loopback.js'
import type { Serving } from '../../../serve/serve.js'
import { showAddress } from '../../browser/show-address.js'
import type { Context } from '../../context.js'
import type { Session } from '../../session/session.js'
import { type SignedIn, signedIn } from '../../session/signed-in.js'

/**
 * Signs the user in through a browser on this machine, or one whose user opens the address. The instance receives the code host's
 * answer or, if none runs, this process.
 * @throws RelayError `unauthenticated` when the sign-in fails, `timed_out`, `not_configured`, `settings`, `storage`.
 */
export async function signInWithBrowser(
  context: Context,
  session: Session,
  { opens }: { readonly opens: boolean },
): Promise<SignedIn> {
  await using serving = session.instance ? undefined : await serveCallback(session)
  const signal = context.signal
  const login = Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString('base64url')
  const address = await startAddress(session, serving, login, signal)
  const waiting = 'Waiting up to 5 minutes for you to sign in there. Ctrl-C cancels.'
  await showAddress(context, session.output, { address, opens, waiting })

  const outcome = await awaitLogin(session.store, login, { signal })
  // The browser still has to fetch the page that says so.
  if (serving) await sleep(PAGE_MS, { signal })
  if (outcome.auth === 'error') throw failed(outcome, session)
  return signedIn(session, await session.owner({ signal }), outcome.account)
}

/** For the browser to follow the redirect to the last page, before this process ends. Milliseconds. */
const PAGE_MS = 300

/** Runs the service during the sign-in, to receive the code host's answer. It forwards nothing. */
async function serveCallback({ settings, client, output, onTaken }: Session): Promise<Serving> {
  if (!client) throw notSetUp(settings)
  const { serve } = await import('../../../serve/serve.js')
  return serve({ ...settings, oauthClient: client }, { log: output.log, forwarding: false, onTaken })
}

/** The error where no OAuth client is known. */
export function notSetUp({ host, port, publicUrl, provider, providerUrl }: Settings): RelayError {
  const own = publicUrl ?? `http://${host}:${port}`
  return new RelayError(
    'settings',
    `Sign-in at ${providerUrl} is not set up. Run relay setup, or set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET of an OAuth app with the callback ${own}/auth/${provider}/callback`,
  )
}

/**
 * The address where the browser starts.
 * @throws RelayError `not_configured` with the instance's own message when it has no sign-in.
 */
async function startAddress(
  { instance, settings, user }: Session,
  serving: Serving | undefined,
  login: string,
  signal: AbortSignal,
): Promise<string> {
  const own = instance?.url ?? serving?.url ?? ''
  const path = `/auth/${settings.provider}?userId=${encodeURIComponent(user)}`
  // Asked here first, so that an error appears in the terminal and not in the browser.
  using client = createLoopbackClient()
  const { status, text } = await client.send(new URL(own + path), { method: 'GET', headers: {} }, { signal })
  if (status !== 302) {
    const { error }: { error?: string } = JSON.parse(text)
    throw new RelayError('not_configured', error ?? `relay at ${own} answered ${status}`)
  }
  const publicUrl = instance?.publicUrl ?? settings.publicUrl ?? own
  return `${publicUrl}${path}&login=${login}`
}

const REASONS: Readonly<Record<Reason, string>> = {
  access_denied: 'access was denied at the code host',
  invalid_state:
    'the browser returned with an unknown state. Start and finish in one browser, within 10 minutes',
  provider_unavailable: 'the code host was unreachable or failed',
  exchange_failed: 'the code host issued no token. Check client id, client secret and callback address',
  storage_failed: 'the token could not be stored',
}

function failed(
  { reason, why }: Extract<LoginOutcome, { auth: 'error' }>,
  { user, host }: Session,
): RelayError {
  // It says which address failed.
  const detail = reason === 'provider_unavailable' ? `: ${why}` : ''
  return new RelayError(
    'unauthenticated',
    `${user} is not signed in at ${host.url}: ${REASONS[reason]} (${reason})${detail}`,
  )
}
