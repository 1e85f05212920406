import { existsSync, rmdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { removeSetup } from '../../auth/setup.js'
import { RelayError } from '../../base/errors.js'
import { isSharedAddress } from '../../base/shared-store.js'
import { isServed, LOCK_FILE, lockProfile, profileExists, SAVED_FILE } from '../../instance/profile.js'
import { Journal } from '../../journal/journal.js'
import { databaseFiles, removeKey } from '../../store/open.js'
import { Tokens } from '../../tokens/tokens.js'
import { define, type Flags, type Shell } from '../command.js'
import { revokeUser } from '../account.js'
import { Prompt } from '../input.js'
import { tilde } from '../output/text.js'
import { openNamedHost } from '../code-host.js'
import { openProfile, openStored, type Profile } from '../profile.js'
import { clientOf } from '../settings/derived.js'
import { joinStored } from '../stored-setup.js'
import { describeSize, profileSize } from '../profile-size.js'

export const resetCommand = define({
  description: `Removes a profile: its journal, its tokens and its webhook secret. It first prints what will be removed and asks for
confirmation, then revokes the tokens at the code host; if that fails, it removes nothing else. Stop relay serve first.`,
  examples: 'relay reset\nrelay reset --profile sandbox --yes',
  options: [
    ['--yes', 'do not ask for confirmation'],
    ['--local', 'do not revoke tokens at the code host'],
  ],
  env: ['clientId', 'clientSecret', 'home', 'store'],
  exits: [6, [8, 'the code host did not revoke a token; the profile stays'], 130],
  run: runReset,
  print: ({ profile }, out) => out.say(`Profile ${profile} is removed`),
})

type ResetFlags = Flags & { readonly yes?: boolean; readonly local?: boolean }

async function runReset(shell: Shell, flags: ResetFlags) {
  await using profile = await openProfile(shell, flags, { instance: 'refuse', mayBeHub: true })
  const { name, folder } = profile
  if (!profileExists(folder))
    throw new RelayError('no_match', `Profile ${name} has no data in ${tilde(folder)}`)
  if (profile.saved?.hub && (await isServed(folder)))
    throw new RelayError('unavailable', `Profile ${name} is in use by its hub, which runs. Stop it first`)
  const users = await whileUnserved(folder, async () => {
    const ended = await endTokens(shell, flags, profile)
    for (const file of [...databaseFiles(folder), path.join(folder, SAVED_FILE)])
      rmSync(file, { force: true })
    return ended
  })
  rmSync(path.join(folder, LOCK_FILE), { force: true })
  try {
    rmdirSync(folder)
  } catch {
    // The folder has files that are not relay's.
  }
  return { profile: name, removed: true, users }
}

/** Runs work while no relay can serve the profile: a stopped or starting relay does not respond. */
async function whileUnserved<Result>(folder: string, work: () => Promise<Result>): Promise<Result> {
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

/**
 * Prints what will be removed, asks, and revokes the tokens of every user, up to the first that fails. Returns the
 * users.
 */
async function endTokens(shell: Shell, flags: ResetFlags, profile: Profile): Promise<readonly string[]> {
  const { out, signal } = shell
  const { values, saved, folder, name } = profile
  if (isSharedAddress(values.store))
    throw new RelayError(
      'usage',
      `The data of profile ${name} is in a database that other relays share, and is not removed. End the tokens with ${profile.command('revoke')}, then remove the profile's schema with psql`,
    )
  const kind = values.store === 'memory' ? 'file' : values.store
  await using database = await openStored(shell, profile, { kind })
  const { store, secrets } = database
  // Users with a token, or with a refresh token.
  const keys = [...(await store.list('token:')), ...(await store.list('refresh:'))]
  const users = [...new Set(keys.map((key) => key.slice(key.indexOf(':') + 1)))].toSorted()
  const joined = await joinStored(profile.parts, secrets)
  const { setup } = joined
  // The tokens of a sandbox ended with it.
  const local = flags.local === true || saved?.sandbox === true
  if (users.length > 0 && !local && joined.hostRefusal) throw joined.hostRefusal
  const journal = new Journal(database.sql)
  const [oldest] = await journal.after(0, 1)
  const deliveries = oldest ? `#${oldest.n} to #${await journal.newest()}` : 'none'
  out.say(`Profile ${name}: ${describeSize(profileSize(folder))} in ${tilde(folder)}. This removes`)
  out.say(`  deliveries  ${deliveries}`)
  out.say(`  tokens      ${users.length === 0 ? 'none' : `of ${users.join(', ')}`}`)
  out.say('  secret      the webhook secret that relay made for it, if any')
  if (setup) out.say(`  client      ${setup.client.id}, which stays registered at ${setup.providerUrl}`)
  using prompt = new Prompt(shell)
  const how = 'Nothing was removed. To remove it without being asked, give --yes'
  if (!flags.yes) await prompt.agree('Remove it?', { how, remains: 'Nothing was removed' })
  if (users.length > 0) {
    const { tokenTtl } = joined.values
    const [tokens, client] = [new Tokens(secrets), clientOf(joined.values)]
    const parts = { host: await openNamedHost(joined), client, store, tokens, tokenTtl, log: out.log }
    for (const user of users)
      await revokeUser(parts, undefined, user, { local, signal }).catch((error: unknown) => {
        if (!(error instanceof RelayError)) throw error
        const next = `The profile stays. Run ${profile.command('reset')} again to remove the rest`
        throw new RelayError(error.kind, `${error.message}. ${next}`, { cause: error })
      })
  }
  if (setup) await removeSetup(secrets)
  // The keychain stores the key outside the folder.
  if (kind === 'keychain') await removeKey(folder)
  return users
}
