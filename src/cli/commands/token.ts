import type { Command } from 'commander'
import type { Context } from '../context.js'
import type { SessionFlags } from '../session.js'
import { addUserOptions } from '../user-options.js'

type TokenFlags = SessionFlags & { readonly header?: boolean }

/** Declares `relay token`. */
export function declareToken(command: Command, context: Context, run = runToken): void {
  command
    .description(
      `Prints the access token of a signed-in user, renewed if need be, for programs that call the service or the code
host themselves.

Examples:
  relay token --header | curl -H @- http://127.0.0.1:8787/api/comment …
  relay token --user ada --json`,
    )
    .option('--header', 'as "Authorization: Bearer …": with curl -H @- it is in no process list')
  addUserOptions(command).action((_: unknown, command: Command) => run(context, command.optsWithGlobals()))
}

async function runToken(context: Context, flags: TokenFlags): Promise<void> {
  const { openSession } = await import('../session.js')
  await using session = await openSession(context, flags)
  const { output, user } = session
  const { accessToken, expiresAt } = await session.holder({ signal: context.signal })
  if (flags.json) output.object({ user, accessToken, expiresAt: new Date(expiresAt).toISOString() })
  else output.result(flags.header ? `Authorization: Bearer ${accessToken}` : accessToken)
}
