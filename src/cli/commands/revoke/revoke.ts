import type { Revocation } from '../../../auth/renew.js'
import type { Context } from '../../context.js'
import { revokeUser } from '../../session/revoke.js'
import { openSession, type Session } from '../../session/session.js'
import type { CommonFlags } from '../../settings/prepare.js'

/** Runs `relay revoke`. */
export async function runRevoke(
  context: Context,
  flags: CommonFlags & { readonly local?: boolean },
): Promise<void> {
  await using session = await openSession(context, flags)
  const { output, user, settings } = session
  const { local } = flags
  const parts = { ...session, tokenTtl: settings.tokenTtl, log: output.log }
  const { removed, upstream } = await revokeUser(parts, user, { local, signal: context.signal })
  if (flags.json) output.object({ user, removed, upstream })
  else output.say(describe(session, { removed, upstream }, local === true))
}

function describe({ user, host }: Session, { removed, upstream }: Revocation, local: boolean): string {
  if (upstream === 'revoked') return `the token of ${user} is deleted here, and revoked at ${host.url}`
  if (!removed) return `${user} was not signed in, so there was nothing to revoke`
  if (local) return `the token of ${user} is deleted here, and not revoked at the code host`
  return `the token of ${user} is deleted here; it had expired`
}
