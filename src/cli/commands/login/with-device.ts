import { beginDeviceSignIn, type DeviceSignIn } from '../../../auth/device.js'
import { accountOf } from '../../../auth/sign-in.js'
import { missingScopes, toTokenGrant } from '../../../auth/token-endpoint.js'
import type { Cancellable } from '../../../base/abort.js'
import { RelayError } from '../../../base/errors.js'
import { printable } from '../../../base/printable.js'
import { formatDuration, systemClock } from '../../../base/time.js'
import type { Session } from '../../session/session.js'
import { type SignedIn, signedIn } from '../../session/signed-in.js'
import { notSetUp } from './in-browser.js'

/**
 * Signs the user in with a code that the user enters in any browser. Needs the OAuth client's id, that of the instance if one runs,
 * and no secret.
 * @throws RelayError `usage` where the code host has no device flow; `settings` without an OAuth client; as
 * `beginDeviceSignIn` and `DeviceSignIn`; `storage`.
 */
export async function signInWithDevice(session: Session, options: Cancellable): Promise<SignedIn> {
  const { host, settings } = session
  if (host.oauth.deviceEndpoint === undefined)
    throw new RelayError(
      'usage',
      `${host.url} has no device flow. Use relay login --no-browser, or relay login --with-token`,
    )
  const clientId = clientIdOf(session)
  if (clientId === undefined) throw notSetUp(settings)
  return complete(session, await beginDeviceSignIn({ host, clientId, ...options }), options)
}

/** The same where the code host and the OAuth client allow it; otherwise undefined. */
export async function tryDevice(session: Session, options: Cancellable): Promise<SignedIn | undefined> {
  const { host, output } = session
  const clientId = clientIdOf(session)
  if (host.oauth.deviceEndpoint === undefined || clientId === undefined) return undefined
  const begun = await beginDeviceSignIn({ host, clientId, ...options }).catch((error: unknown) => {
    if (!(error instanceof RelayError) || error.kind !== 'not_configured') throw error
    output.log.debug(error.message)
    return undefined
  })
  return begun && complete(session, begun, options)
}

function clientIdOf({ instance, client }: Session): string | undefined {
  return instance?.clientId ?? client?.id
}

async function complete(session: Session, begun: DeviceSignIn, options: Cancellable): Promise<SignedIn> {
  const { host, tokens, user, settings, output } = session
  const { userCode, address, lifetime } = begun
  const lines = [
    'Open this address in a browser on any machine, and enter the code:',
    '',
    `  ${printable(address)}`,
    `  ${printable(userCode)}`,
    '',
    `Waiting up to ${formatDuration(lifetime)} for you to do so. Ctrl-C cancels.`,
  ]
  for (const line of lines) output.say(line)
  const response = await begun.awaitToken()
  const grant = toTokenGrant(response, { origin: host.origin, ttl: settings.tokenTtl, now: systemClock() })
  // Before it is stored: a command that fails has signed nobody in.
  const { login } = await accountOf(host, response.accessToken, options)
  await tokens.save(user, grant)
  session.remember()
  const missing = missingScopes(host.oauth, response.scopes)
  if (missing.length > 0)
    output.log.warn(`${host.url} did not grant ${missing.join(', ')}: some actions may be refused`)
  return signedIn(session, { userId: user, expiresAt: grant.expiresAt }, login)
}
