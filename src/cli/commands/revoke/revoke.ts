import { RelayError } from '../../../base/errors.js'
import { type Revocation, revokeEverywhere } from '../../../oauth/revoke.js'
import type { Context } from '../../context.js'
import { openSession, type Session } from '../../session/session.js'
import type { CommonFlags } from '../../settings/prepare.js'

export async function runRevoke(
  context: Context,
  flags: CommonFlags & { readonly local?: boolean },
): Promise<void> {
  await using session = await openSession(context, flags)
  const { output, user } = session
  const { local } = flags
  const { removed, upstream } = await revokeEverywhere(session, user, { local, signal: context.signal })
  if (typeof upstream === 'object') throw refused(session, upstream.failed)
  if (flags.json) output.object({ user, removed, upstream })
  else output.say(describe(session, { removed, upstream }, local === true))
}

/** Any refusal by the code host counts as a provider failure, whatever its status. */
function refused({ user, provider }: Session, { message, kind }: RelayError): RelayError {
  const newKind = kind === 'cancelled' ? kind : 'provider_failed'
  return new RelayError(
    newKind,
    `The token of ${user} is deleted here, but ${provider.url} did not revoke it: ${message}`,
  )
}

function describe({ user, provider }: Session, { removed, upstream }: Revocation, local: boolean): string {
  if (!removed) return `${user} was not signed in, so there was nothing to revoke`
  const upstreamText = {
    revoked: `revoked at ${provider.url}`,
    unsupported: `still valid at ${provider.url}: only its user can revoke it, in the settings there`,
    skipped: local
      ? 'not revoked at the code host'
      : `not revoked at ${provider.url}: it had expired, or came from another code host. Its refresh token may still be valid there`,
    'no client': `still valid at ${provider.url}: revoking it there needs RELAY_CLIENT_ID and RELAY_CLIENT_SECRET`,
  }
  return `the token of ${user} is deleted here, and ${typeof upstream === 'string' ? upstreamText[upstream] : ''}`
}
