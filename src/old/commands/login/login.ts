import { RelayError } from '../../../base/errors.js'
import type { Context } from '../../context.js'
import { openSession, type Session } from '../../session/session.js'
import type { SignedIn } from '../../session/signed-in.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { hasDisplay } from './display.js'

type LoginFlags = CommonFlags & {
  readonly browser?: boolean
  readonly device?: boolean
  readonly withToken?: boolean
}

/** Runs `relay login`. */
export async function runLogin(context: Context, flags: LoginFlags): Promise<void> {
  if (flags.device && flags.withToken)
    throw new RelayError('usage', '--device and --with-token are two ways to sign in. Give one of them')
  // Standard input first: an error there needs neither the profile nor the code host.
  const token = flags.withToken ? await readGivenToken(context) : undefined
  const mayCreate = token === undefined ? 'with client' : 'always'
  await using session = await openSession(context, flags, { mayCreate })
  const { output, settings } = session
  if (settings.store === 'memory')
    throw new RelayError('settings', '--store memory would lose the token as soon as this command ends')
  const account = await signIn(context, session, flags, token)
  if (flags.json) return output.object({ ...account })
  output.say(`signed in as ${account.login} at ${account.providerUrl}, for user ${account.user}`)
  output.say(`the token is in ${account.store} and expires ${account.expiresAt}`)
}

async function readGivenToken(context: Context): Promise<string> {
  return (await import('./given-token.js')).readGivenToken(context)
}

async function signIn(
  context: Context,
  session: Session,
  { browser, device }: LoginFlags,
  token: string | undefined,
): Promise<SignedIn> {
  const { signal } = context
  if (token !== undefined) return (await import('./given-token.js')).storeToken(session, token, { signal })
  if (device) return (await import('./with-device.js')).signInWithDevice(session, { signal })
  const { signInWithBrowser } = await import('./in-browser.js')
  if (browser !== false && !hasDisplay(context.env)) {
    const { tryDevice } = await import('./with-device.js')
    const account = await tryDevice(session, { signal })
    if (account) return account
  }
  return signInWithBrowser(context, session, { opens: browser !== false })
}
