import type { Command } from 'commander'
import type { Context } from '../context.js'
import { printable } from '../output.js'
import type { SessionFlags } from '../session.js'
import { addUserOptions } from '../user-options.js'

/** Declares `relay whoami`. */
export function declareWhoami(command: Command, context: Context, run = runWhoami): void {
  command.description(
    `Says whose token relay holds: the account at the code host, where the token is kept, and when it ends.

Examples:
  relay whoami
  relay whoami --json | jq -r .login`,
  )
  addUserOptions(command).action((_: unknown, command: Command) => run(context, command.optsWithGlobals()))
}

async function runWhoami(context: Context, flags: SessionFlags): Promise<void> {
  const [{ openSession }, { describeHolder }] = await Promise.all([
    import('../session.js'),
    import('../signed-in.js'),
  ])
  await using session = await openSession(context, flags)
  const options = { signal: context.signal }
  const who = await describeHolder(session, await session.holder(options), options)
  const { output } = session
  if (flags.json) return output.object({ ...who })
  const rows = [
    ['account', printable(who.login)],
    ['code host', who.providerUrl],
    ['user', who.user],
    ['token', `in ${who.store}, ends ${who.expiresAt}`],
  ] as const
  for (const [name, text] of rows) output.result(`${name.padEnd(11)}${text}`)
}
