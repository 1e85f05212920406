import { userInfo } from 'node:os'
import type { Command } from 'commander'
import { RelayError } from '../../base/errors.js'
import type { Store } from '../../store/contract.js'
import type { Context } from '../context.js'
import { prepare, type RawOptions } from '../globals.js'
import { profileFolder } from '../settings.js'

type TokenOptions = RawOptions & { readonly user?: string; readonly header?: boolean }

/** Declares `relay token`. */
export function addToken(program: Command, context: Context, run = runToken): void {
  program
    .command('token')
    .summary("print a signed-in user's access token")
    .description(
      `Prints the access token of a signed-in user, for programs that call the service or the code host.

Examples:
  relay token --header | curl -H @- http://127.0.0.1:8787/api/comment …
  relay token --user ada --json`,
    )
    .option('--user <id>', 'whose token, RELAY_USER (default: your name on this machine)')
    .option(
      '--header',
      'as an "Authorization: Bearer …" line: with curl -H @- the token is in no process list',
    )
    .action((_: unknown, command: Command) => run(context, command.optsWithGlobals()))
}

async function runToken(context: Context, raw: TokenOptions): Promise<void> {
  const { output, options } = prepare(context, raw)
  const user = raw.user ?? (context.env['RELAY_USER'] || userInfo().username)
  const [{ openDatabase }, { createTokens }, { parseUserId }] = await Promise.all([
    import('../../store/open.js'),
    import('../../tokens/tokens.js'),
    import('../../tokens/user-id.js'),
  ])
  await using database = await openDatabase({ kind: options.store ?? 'file', folder: profileFolder(options) })
  const holder = await createTokens(database.store).get(parseUserId(user))
  if (!holder) throw await notSignedIn(user, database.store)
  const { accessToken, expiresAt } = holder
  if (raw.json) output.object({ user, accessToken, expiresAt: new Date(expiresAt).toISOString() })
  else output.result(raw.header ? `Authorization: Bearer ${accessToken}` : accessToken)
}

async function notSignedIn(user: string, store: Store): Promise<RelayError> {
  const { findInstance } = await import('../../instance/instance.js')
  const instance = await findInstance(store)
  const next = instance
    ? `open ${instance.url}/auth/${instance.provider}?userId=${encodeURIComponent(user)}`
    : 'start relay serve and open the address it names'
  return new RelayError('unauthenticated', `${user} is not signed in: ${next}`)
}
