import { RelayError } from '../../../base/errors.js'
import type { Context } from '../../context.js'
import { spokenInstant } from '../../output/time.js'
import { openSession } from '../../session/session.js'
import { describeAccount } from '../../session/signed-in.js'
import type { CommonFlags } from '../../settings/prepare.js'

export async function runWhoami(context: Context, flags: CommonFlags): Promise<void> {
  await using session = await openSession(context, flags)
  const options = { signal: context.signal }
  const { output, user } = session
  const owner = await session.owner(options)
  const account = await describeAccount(session, owner, options).catch((error: unknown) => {
    throw withUser(error, user)
  })
  if (flags.json) return output.object({ ...account })
  const time = (iso: string): string => (output.isTerminal ? spokenInstant(Date.parse(iso), Date.now()) : iso)
  const lines = [
    ['account', account.login],
    ['code host', account.providerUrl],
    ['user', account.user],
    ['token', `in ${account.store}, expires ${time(account.expiresAt)}`],
  ] as const
  for (const [name, text] of lines) output.result(`${name.padEnd(11)}${text}`)
}

/** Names the user when the code host did not answer: the token may be valid. */
function withUser(error: unknown, user: string): unknown {
  if (!(error instanceof RelayError) || !error.kind.startsWith('provider_')) return error
  const message = `Could not get the account of ${user}: ${error.message}`
  return new RelayError(error.kind, message, { cause: error })
}
