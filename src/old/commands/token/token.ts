import type { Context } from '../../context.js'
import { openSession } from '../../session/session.js'
import type { CommonFlags } from '../../settings/prepare.js'

export async function runToken(
  context: Context,
  flags: CommonFlags & { readonly header?: boolean },
): Promise<void> {
  await using session = await openSession(context, flags)
  const { output, user } = session
  const { accessToken, expiresAt } = await session.owner({ signal: context.signal })
  if (flags.json) output.object({ user, accessToken, expiresAt: new Date(expiresAt).toISOString() })
  else output.result(flags.header ? `Authorization: Bearer ${accessToken}` : accessToken)
}
