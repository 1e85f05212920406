import type { Command } from 'commander'
import { RelayError } from '../../base/errors.js'
import type { Reason } from '../../oauth/outcome.js'
import type { Serving } from '../../serve/serve.js'
import { openBrowser } from '../browser.js'
import type { Context } from '../context.js'
import { addOptions } from '../globals.js'
import { printable } from '../output.js'
import type { Session, SessionFlags } from '../session.js'
import { addUserOptions } from '../user-options.js'

type LoginFlags = SessionFlags & { readonly browser?: boolean }

/** Declares `relay login`. */
export function declareLogin(command: Command, context: Context, run = runLogin): void {
  command
    .description(
      `Signs a user in at the code host, in the browser, and keeps the token. Uses the running relay of the profile;
where none runs, it takes the code host's answer itself, on the port that serve would use.

Examples:
  relay login
  relay login --no-browser                  prints the address to open, also over SSH
  relay login --user ada --json | jq -r .login`,
    )
    .option('--no-browser', 'print the address instead of opening it')
  addOptions(command, ['port', 'publicUrl'])
  addUserOptions(command, [0, 1, 2, 4, 7, 8, 130], {
    0: 'signed in',
    4: 'sign-in refused or failed',
    7: 'nobody signed in within 5 minutes',
  }).action((_: unknown, command: Command) => run(context, command.optsWithGlobals()))
}

async function runLogin(context: Context, flags: LoginFlags): Promise<void> {
  const [{ openSession }, { awaitLogin }, { describeHolder }] = await Promise.all([
    import('../session.js'),
    import('../../oauth/login.js'),
    import('../signed-in.js'),
  ])
  await using session = await openSession(context, flags)
  await using serving = session.instance ? undefined : await serveCallback(session)
  const { output } = session
  const signal = context.signal
  const login = Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString('base64url')
  const address = await startAddress(session, serving, login, signal)
  await show(context, session, address, flags.browser !== false)

  const outcome = await awaitLogin(session.store, login, { signal })
  if (outcome.auth === 'error') throw failed(outcome.reason, session)
  const who = await describeHolder(session, await session.holder({ signal }), { signal })
  if (flags.json) return output.object({ ...who })
  output.say(`signed in as ${printable(who.login)} at ${who.providerUrl}, for user ${who.user}`)
  output.say(`the token is in ${who.store} and ends ${who.expiresAt}`)
}

/** The service, for as long as the sign-in takes: the code host's answer has to arrive somewhere. It hands nothing on. */
async function serveCallback({ settings, client, output }: Session): Promise<Serving> {
  if (settings.store === 'memory') {
    throw new RelayError('settings', '--store memory would forget the token as soon as this command ends')
  }
  if (!client) {
    const { host, port, publicUrl = `http://${host}:${port}`, provider, providerUrl } = settings
    throw new RelayError(
      'settings',
      `sign-in is not set up: register an OAuth app at ${providerUrl} that returns to ${publicUrl}/auth/${provider}/callback, then set RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`,
    )
  }
  const { serve } = await import('../../serve/serve.js')
  return serve({ ...settings, oauthClient: client }, { log: output.log, handsOn: false })
}

/**
 * Where the browser starts.
 * @throws RelayError `not_configured` when the instance cannot sign anyone in, with its own words.
 */
async function startAddress(
  { instance, settings, user }: Session,
  serving: Serving | undefined,
  login: string,
  signal: AbortSignal,
): Promise<string> {
  const own = instance?.url ?? serving?.url ?? ''
  const path = `/auth/${settings.provider}?userId=${encodeURIComponent(user)}`
  // Asked first, so that what is wrong is said here and not in a browser.
  const answer = await fetch(`${own}${path}`, { redirect: 'manual', signal })
  if (answer.status !== 302) {
    const { error }: { error?: string } = JSON.parse(await answer.text())
    throw new RelayError('not_configured', error ?? `relay at ${own} answered ${answer.status}`)
  }
  const publicUrl = instance?.publicUrl ?? settings.publicUrl ?? own
  return `${publicUrl}${path}&login=${login}`
}

async function show(
  { env, signal }: Context,
  { output }: Session,
  address: string,
  wanted: boolean,
): Promise<void> {
  const remote = Boolean(env['SSH_CONNECTION'])
  const opened = wanted && !remote && (await openBrowser(address, env['BROWSER'], { signal }))
  output.say(
    opened ? 'your browser opens; if it does not, open this address:' : 'open this address in a browser:',
  )
  output.say(`\n  ${address}\n`)
  if (remote) output.say(tunnelHint(address))
  output.say('waiting until you have signed in there, for 5 minutes at most; Ctrl-C gives up')
}

/** The browser is on another machine than relay, and 127.0.0.1 means that one to it. */
function tunnelHint(address: string): string {
  const { hostname, port } = new URL(address)
  return `from another machine, forward the port first: ssh -L ${port}:${hostname}:${port} <this machine>\n`
}

const REASONS: Readonly<Record<Reason, string>> = {
  access_denied: 'it was refused at the code host',
  invalid_state:
    'the browser came back without the state it left with; begin and end in one browser, within 10 minutes',
  provider_unavailable: 'the code host could not be reached or failed',
  exchange_failed:
    'the code host did not give a token; are client id, client secret and redirect address right?',
  storage_failed: 'the token could not be stored',
}

function failed(reason: Reason, { user, provider }: Session): RelayError {
  return new RelayError(
    'unauthenticated',
    `${user} is not signed in at ${provider.url}: ${REASONS[reason]} (${reason})`,
  )
}
