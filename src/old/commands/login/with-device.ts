import type { Cancellable } from '../../../base/abort.js'
import { RelayError } from '../../../base/errors.js'
import { printable } from '../../../base/printable.js'
import { formatDuration, systemClock } from '../../../base/time.js'
import { beginDeviceSignIn, type DeviceSignIn } from '../../../oauth/device.js'
import { missingScopes } from '../../../oauth/scopes.js'
import { toTokenGrant } from '../../../oauth/token-endpoint.js'
import type { Session } from '../../session/session.js'
import { describeAccount, type SignedIn } from '../../session/signed-in.js'
import { notSetUp } from './in-browser.js'

/**
 * Signs the user in with a code that the user enters in any browser. Needs the OAuth client's id, that of the instance if one runs,
 * and no secret.
 * @throws RelayError `usage` where the code host has no device flow; `settings` without an OAuth client; as
 * `beginDeviceSignIn` and `DeviceSignIn`; `storage`.
 */
export async function signInWithDevice(session: Session, options: Cancellable): Promise<SignedIn> {
  const { provider, settings } = session
  if (provider.oauth.deviceEndpoint === undefined)
    throw new RelayError(
      'usage',
      `${provider.url} has no device flow. Use relay login --no-browser, or relay login --with-token`,
    )
  const clientId = clientIdOf(session)
  if (clientId === undefined) throw notSetUp(settings)
  return complete(session, await beginDeviceSignIn({ provider, clientId, ...options }), options)
}

/** The same where the code host and the OAuth client allow it; otherwise undefined. */
export async function tryDevice(session: Session, options: Cancellable): Promise<SignedIn | undefined> {
  const { provider, output } = session
  const clientId = clientIdOf(session)
  if (provider.oauth.deviceEndpoint === undefined || clientId === undefined) return undefined
  const begun = await beginDeviceSignIn({ provider, clientId, ...options }).catch((error: unknown) => {
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
  const { provider, tokens, user, settings, output } = session
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
  const terms = { origin: provider.origin, ttl: settings.tokenTtl, now: systemClock() }
  await tokens.save(user, toTokenGrant(response, terms))
  session.remember()
  const missing = missingScopes(provider, response.scopes)
  if (missing.length > 0)
    output.log.warn(`${provider.url} did not grant ${missing.join(', ')}: some actions may be refused`)
  return describeAccount(session, await session.owner(options), options)
}
