import { rmdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline/promises'
import { RelayError } from '../../../base/errors.js'
import { profileExists, SAVED_FILE } from '../../../instance/saved-profile.js'
import { openJournal } from '../../../journal/open.js'
import type { Database } from '../../../store/database.js'
import { databaseFiles, openDatabase } from '../../../store/open.js'
import type { Context } from '../../context.js'
import { tilde } from '../../output/display-path.js'
import { type Attached, attach } from '../../session/attach.js'
import { profileFolder } from '../../settings/complete.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { webhookSecretFile } from '../../settings/webhook-secret.js'
import { describeSize, profileSize } from '../profiles/size.js'
import { revokeAll, usersOf } from './tokens.js'

type ResetFlags = CommonFlags & { readonly yes?: boolean; readonly local?: boolean }

/** Runs `relay reset`. */
export async function runReset(context: Context, flags: ResetFlags): Promise<void> {
  const attached = await attach(context, flags)
  const { output, options, instance } = attached
  const { profile } = options
  const folder = profileFolder(options)
  if (instance)
    throw new RelayError(
      'unavailable',
      `Profile ${profile} is in use by process ${instance.pid} at ${instance.url}. Stop it first`,
    )
  if (!profileExists(folder))
    throw new RelayError('no_match', `Profile ${profile} has no data in ${tilde(folder)}`)
  const users = await endTokens(context, flags, attached)
  removeFiles(folder)
  if (flags.json) output.object({ profile, removed: true, users })
  else output.say(`Profile ${profile} is removed`)
}

/** Says what will be removed, asks, and revokes the tokens of every user, whom it returns. */
async function endTokens(
  context: Context,
  flags: ResetFlags,
  attached: Attached,
): Promise<readonly string[]> {
  const { output, options, saved } = attached
  const kind = options.store === 'memory' ? 'file' : options.store
  await using database = await openDatabase({ kind, folder: profileFolder(options) })
  const users = await usersOf(database)
  for (const line of await describe(database, attached, users)) output.say(line)
  await confirm(context, flags)
  // The tokens of a sandbox ended with it.
  const local = flags.local === true || saved?.sandbox === true
  await revokeAll(attached, database, users, { local, signal: context.signal })
  return users
}

async function describe(
  { sql }: Database,
  { options }: Attached,
  users: readonly string[],
): Promise<readonly string[]> {
  const journal = openJournal(sql)
  const [oldest] = await journal.after(0, 1)
  const folder = profileFolder(options)
  return [
    `Profile ${options.profile}: ${describeSize(profileSize(folder))} in ${tilde(folder)}. This removes`,
    `  deliveries  ${oldest ? `#${oldest.n} to #${await journal.newest()}` : 'none'}`,
    `  tokens      ${users.length === 0 ? 'none' : `of ${users.join(', ')}`}`,
    '  secret      the webhook secret that relay made for it, if any',
  ]
}

/** @throws RelayError `usage` where nobody can be asked; `cancelled` for any answer but yes. */
async function confirm({ stdin, stderr, signal }: Context, { yes }: ResetFlags): Promise<void> {
  if (yes) return
  if (stdin.isTTY !== true || stderr.isTTY !== true)
    throw new RelayError('usage', 'Nothing was removed. To remove it without being asked, give --yes')
  stderr.write('Remove it? [y/N] ')
  const lines = createInterface({ input: stdin, signal })
  try {
    for await (const answer of lines)
      if (/^y(es)?$/i.test(answer.trim())) return
      else break
  } finally {
    lines.close()
  }
  throw new RelayError('cancelled', 'Nothing was removed')
}

/** Removes relay's own files, and the folder if nothing else is in it. */
function removeFiles(folder: string): void {
  const files = [...databaseFiles(folder), webhookSecretFile(folder), path.join(folder, SAVED_FILE)]
  for (const file of files) rmSync(file, { force: true })
  try {
    rmdirSync(folder)
  } catch {
    // Somebody else's files are in it.
  }
}
