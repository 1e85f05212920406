import type { Command } from 'commander'
import { RelayError } from '../../base/errors.js'
import type { Revocation } from '../../oauth/revoke.js'
import type { Context } from '../context.js'
import type { Session, SessionFlags } from '../session.js'
import { addUserOptions } from '../user-options.js'

type RevokeFlags = SessionFlags & { readonly local?: boolean }

/** Declares `relay revoke`. */
export function declareRevoke(command: Command, context: Context, run = runRevoke): void {
  command
    .description(
      `Forgets a user's token: here at once, so that its bearer stops working, then at the code host where it can be
revoked (GitHub; Gitea's users do that in their settings). Says what became of both.

Examples:
  relay revoke
  relay revoke --user ada --local`,
    )
    .option('--local', 'leave the code host alone')
  addUserOptions(command, [0, 1, 2, 8, 130], {
    8: 'the code host did not revoke it; it is gone here all the same',
  }).action((_: unknown, command: Command) => run(context, command.optsWithGlobals()))
}

async function runRevoke(context: Context, flags: RevokeFlags): Promise<void> {
  const [{ openSession }, { revokeEverywhere }] = await Promise.all([
    import('../session.js'),
    import('../../oauth/revoke.js'),
  ])
  await using session = await openSession(context, flags)
  const { output, user } = session
  const { local } = flags
  const { removed, upstream } = await revokeEverywhere(session, user, { local, signal: context.signal })
  if (typeof upstream === 'object') throw refused(session, upstream.failed)
  if (flags.json) output.object({ user, removed, upstream })
  else output.say(words(session, { removed, upstream }, local === true))
}

/** The code host's refusal is a failure of the network kind, whatever status it came with. */
function refused({ user, provider }: Session, { message, kind }: RelayError): RelayError {
  const kept = kind === 'cancelled' ? kind : 'provider_failed'
  return new RelayError(
    kept,
    `${user}'s token is gone here, but ${provider.url} did not revoke it: ${message}`,
  )
}

function words({ user, provider }: Session, { removed, upstream }: Revocation, local: boolean): string {
  if (!removed) return `${user} was not signed in: there was nothing to revoke`
  const there = {
    revoked: `revoked at ${provider.url}`,
    unsupported: `still good at ${provider.url}, which lets only its user revoke it, in the settings there`,
    skipped: local
      ? 'left alone at the code host'
      : `not revoked at ${provider.url}: it had ended, or came from another code host. What could renew it may still be good there`,
    'no client': `still good at ${provider.url}: only with RELAY_CLIENT_ID and RELAY_CLIENT_SECRET can it be revoked there`,
  }
  return `${user}'s token is gone here, and ${typeof upstream === 'string' ? there[upstream] : ''}`
}
