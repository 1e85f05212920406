import { RelayError } from '../base/errors.js'
import { findOwnHooks, type HookContext, SavedHooks } from '../codehost/hooks.js'
import type { Repo, RepoHook } from '../codehost/host.js'
import { tunnelAddress } from './addresses.js'
import { loginCommandLine } from './advice.js'
import type { Shell } from './command.js'
import type { Profile } from './profile.js'
import { formatRepo } from '../codehost/repo.js'
import type { UserProfile } from './user-profile.js'

// The hooks of a repository, for the commands about them.

/** Makes the context in which the signed-in user manages a repository's hooks. The token is renewed if necessary. */
export function placeOf({ signal }: Shell, profile: UserProfile, repo: Repo): HookContext {
  const { host, database } = profile
  const login = loginCommandLine(profile)
  const command = (line: string): string => profile.command(line)
  const token = async (): Promise<string> => (await profile.owner()).accessToken
  const { hooks } = host.as(token, { signal })
  return { host, hooks, saved: new SavedHooks(database.store, host), repo, login, command }
}

/** The address that the code host sends to: the running tunnel's, else the public one. Undefined if relay has none that lasts. */
export function payloadAddress(profile: Profile): string | undefined {
  const { instance, values } = profile
  const base = instance?.publicUrl ?? values.publicUrl
  return tunnelAddress(profile) ?? (base === undefined ? undefined : `${base}/webhook`)
}

/** Finds the repository's hook that leads here. @throws RelayError `no_match` if there is none, with the next step */
export async function findOwnHook(profile: UserProfile, place: HookContext): Promise<RepoHook> {
  const [hook] = await findOwnHooks(place, payloadAddress(profile))
  if (hook) return hook
  const name = formatRepo(place.repo)
  throw new RelayError(
    'no_match',
    `${name} has no hook that leads here. Create it with ${profile.command(`hook add ${name}`)}`,
  )
}
