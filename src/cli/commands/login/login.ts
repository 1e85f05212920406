import { RelayError } from '../../../base/errors.js'
import { createLoopbackClient } from '../../../net/loopback-client.js'
import { awaitLogin } from '../../../oauth/login.js'
import type { Reason } from '../../../oauth/outcome.js'
import type { Serving } from '../../../serve/serve.js'
import type { Context } from '../../context.js'
import { openSession, type Session } from '../../session/session.js'
import { describeAccount } from '../../session/signed-in.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { openBrowser } from './browser.js'

export async function runLogin(
  context: Context,
  flags: CommonFlags & { readonly browser?: boolean },
): Promise<void> {
  await using session = await openSession(context, flags, { mayCreate: true })
  await using serving = session.instance ? undefined : await serveCallback(session)
  const { output } = session
  const signal = context.signal
  const login = Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString('base64url')
  const address = await startAddress(session, serving, login, signal)
  await sendToBrowser(context, session, address, flags.browser !== false)

  const outcome = await awaitLogin(session.store, login, { signal })
  if (outcome.auth === 'error') throw failed(outcome.reason, session)
  // Before the token is read, so that a sign-in in between stays unconfirmed.
  const { tokens, user } = session
  const unconfirmed = await tokens.unconfirmed(user)
  const account = await describeAccount(session, await session.owner({ signal }), { signal })
  if (unconfirmed) await tokens.confirm(user, unconfirmed)
  if (flags.json) return output.object({ ...account })
  output.say(`signed in as ${account.login} at ${account.providerUrl}, for user ${account.user}`)
  output.say(`the token is in ${account.store} and expires ${account.expiresAt}`)
}

/** Runs the service during the sign-in, to receive the code host's answer. It forwards nothing. */
async function serveCallback({ settings, client, output, onTaken }: Session): Promise<Serving> {
  if (settings.store === 'memory') {
    throw new RelayError('settings', '--store memory would lose the token as soon as this command ends')
  }
  if (!client) {
    const { host, port, publicUrl = `http://${host}:${port}`, provider, providerUrl } = settings
    throw new RelayError(
      'settings',
      `Sign-in is not set up. Register an OAuth app at ${providerUrl} with the callback ${publicUrl}/auth/${provider}/callback, then set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`,
    )
  }
  const { serve } = await import('../../../serve/serve.js')
  return serve({ ...settings, oauthClient: client }, { log: output.log, forwarding: false, onTaken })
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

async function sendToBrowser(
  { env, signal }: Context,
  { output }: Session,
  address: string,
  enabled: boolean,
): Promise<void> {
  const remote = Boolean(env['SSH_CONNECTION'])
  const opened = enabled && !remote && (await openBrowser(address, env['BROWSER'], { signal }))
  const lines = [
    opened ? 'Your browser opens. If it does not, open this address:' : 'Open this address in a browser:',
    '',
    `  ${address}`,
    '',
    ...(remote ? [tunnelHint(address), ''] : []),
    'Waiting up to 5 minutes for you to sign in there. Ctrl-C cancels.',
  ]
  for (const line of lines) output.say(line)
}

/** For a browser on another machine than relay, where 127.0.0.1 is that machine. */
function tunnelHint(address: string): string {
  const { hostname, port } = new URL(address)
  return `From another machine, forward the port first: ssh -L ${port}:${hostname}:${port} <this machine>`
}

const REASONS: Readonly<Record<Reason, string>> = {
  access_denied: 'access was denied at the code host',
  invalid_state:
    'the browser returned with an unknown state. Start and finish in one browser, within 10 minutes',
  provider_unavailable: 'the code host was unreachable or failed',
  exchange_failed: 'the code host issued no token. Check client id, client secret and callback address',
  storage_failed: 'the token could not be stored',
}

function failed(reason: Reason, { user, provider }: Session): RelayError {
  return new RelayError(
    'unauthenticated',
    `${user} is not signed in at ${provider.url}: ${REASONS[reason]} (${reason})`,
  )
}
