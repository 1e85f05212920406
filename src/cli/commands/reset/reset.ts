import { existsSync, rmdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { removeSetup } from '../../../auth/setup.js'
import { RelayError } from '../../../base/errors.js'
import { isSharedAddress } from '../../../base/shared-store.js'
import { LOCK_FILE, lockProfile, profileExists, SAVED_FILE } from '../../../instance/profile.js'
import { Journal } from '../../../journal/journal.js'
import { type Database, databaseFiles, openDatabase, removeKey } from '../../../store/open.js'
import type { Context } from '../../context.js'
import { tilde } from '../../output/display-path.js'
import { canAsk, Prompt } from '../../prompt.js'
import { type Attached, attach } from '../../session/attach.js'
import { profileFolder } from '../../settings/complete.js'
import type { CommonFlags } from '../../settings/prepare.js'
import { readStoredClient, withStoredClient } from '../../settings/stored.js'
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
  const users = await alone(folder, async () => {
    const ended = await endTokens(context, flags, attached)
    removeFiles(folder)
    return ended
  })
  removeFolder(folder)
  if (flags.json) output.object({ profile, removed: true, users })
  else output.say(`Profile ${profile} is removed`)
}

/** While no relay can serve the profile: one that is stopped, or starting, does not answer. */
async function alone<Result>(folder: string, work: () => Promise<Result>): Promise<Result> {
  const file = path.join(folder, LOCK_FILE)
  const wasThere = existsSync(file)
  const lock = await lockProfile(folder, () => 'a process that is stopped, starting or ending')
  try {
    return await work()
  } finally {
    lock[Symbol.dispose]()
    if (!wasThere) rmSync(file, { force: true })
  }
}

/** Says what will be removed, asks, and revokes the tokens of every user. Returns the users. */
async function endTokens(
  context: Context,
  flags: ResetFlags,
  attached: Attached,
): Promise<readonly string[]> {
  const { output, options, saved } = attached
  if (isSharedAddress(options.store))
    throw new RelayError(
      'usage',
      `The data of profile ${options.profile} is in a database that other relays share, and is not removed. End the tokens with relay revoke, then remove the profile's schema with psql`,
    )
  const kind = options.store === 'memory' ? 'file' : options.store
  await using database = await openDatabase({ kind, folder: profileFolder(options) })
  const users = await usersOf(database)
  const stored = await readStoredClient(database.secrets)
  for (const line of await describe(database, attached, users)) output.say(line)
  if (stored) output.say(`  client      ${stored.client.id}, which stays registered at ${stored.providerUrl}`)
  await checkConsent(context, flags)
  // The tokens of a sandbox ended with it.
  const local = flags.local === true || saved?.sandbox === true
  const complete = withStoredClient(attached, stored)
  await revokeAll(complete, database, users, { local, signal: context.signal })
  if (stored) await removeSetup(database.secrets)
  // The keychain keeps it outside the folder.
  if (kind === 'keychain') await removeKey(profileFolder(options))
  return users
}

async function describe(
  { sql }: Database,
  { options }: Attached,
  users: readonly string[],
): Promise<readonly string[]> {
  const journal = new Journal(sql)
  const [oldest] = await journal.after(0, 1)
  const folder = profileFolder(options)
  return [
    `Profile ${options.profile}: ${describeSize(profileSize(folder))} in ${tilde(folder)}. This removes`,
    `  deliveries  ${oldest ? `#${oldest.n} to #${await journal.newest()}` : 'none'}`,
    `  tokens      ${users.length === 0 ? 'none' : `of ${users.join(', ')}`}`,
    '  secret      the webhook secret that relay made for it, if any',
  ]
}

/** @throws RelayError `usage` where there is no terminal to ask on; `cancelled` for any answer but yes. */
async function checkConsent(context: Context, { yes }: ResetFlags): Promise<void> {
  if (yes) return
  if (!canAsk(context))
    throw new RelayError('usage', 'Nothing was removed. To remove it without being asked, give --yes')
  using prompt = new Prompt(context)
  if (!(await prompt.confirm('Remove it?'))) throw new RelayError('cancelled', 'Nothing was removed')
}

function removeFiles(folder: string): void {
  const files = [...databaseFiles(folder), webhookSecretFile(folder), path.join(folder, SAVED_FILE)]
  for (const file of files) rmSync(file, { force: true })
}

/** Removes the lock file, which no process has locked any more, and the folder if it is empty. */
function removeFolder(folder: string): void {
  rmSync(path.join(folder, LOCK_FILE), { force: true })
  try {
    rmdirSync(folder)
  } catch {
    // Somebody else's files are in it.
  }
}
