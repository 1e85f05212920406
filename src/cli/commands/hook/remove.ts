import { RelayError } from '../../../base/errors.js'
import { unregisterHook } from '../../../codehost/hooks.js'
import type { Context } from '../../context.js'
import { formatRepo } from '../../session/repo.js'
import { type AddressFlags, openHookSession, payloadAddress } from './hook-session.js'
import { hookObject } from './object.js'

/** Runs `relay hook remove`. */
export async function runRemove(context: Context, flags: AddressFlags, text: string): Promise<void> {
  await using hooks = await openHookSession(context, flags, text)
  const { session, place, repo } = hooks
  const url = await payloadAddress(session, flags)
  const removed = await unregisterHook(place, url)
  for (const hook of removed)
    if (flags.json) session.output.object(hookObject(hook, true))
    else session.output.result(`hook of ${formatRepo(repo)} removed: ${hook.url}`)
  if (removed.length === 0)
    throw new RelayError(
      'no_match',
      `${formatRepo(repo)} has no hook that leads here. relay hook list ${formatRepo(repo)} shows all; name the address of another with --url`,
    )
}
