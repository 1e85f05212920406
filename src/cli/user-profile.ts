import { otherAccountText } from '../auth/accounts.js'
import { isFresh, renewToken, type RenewParts, signInAgain } from '../auth/renew.js'
import { Disposal } from '../base/lifetime.js'
import { type Limits, TIME_LIMITS } from '../base/seams.js'
import type { OAuthClient } from '../base/settings.js'
import { type Clock, systemClock } from '../base/time.js'
import type { CodeHost } from '../codehost/host.js'
import { Journal } from '../journal/journal.js'
import { findSandboxClient } from '../sandbox/client.js'
import { type Database, mayHaveData } from '../store/open.js'
import { type TokenOwner, Tokens } from '../tokens/tokens.js'
import { loginCommandLine, notRunning, onlyInMemory, signInCommand, withCommand } from './advice.js'
import { codeHostOf, openNamedHost } from './code-host.js'
import type { Flags, Shell } from './command.js'
import { callInstance } from './instance-client.js'
import { marked, outside } from './output/outside.js'
import { openProfile, openStored, type Profile, type ProfileOptions, remember } from './profile.js'
import { clientOf, isUserNamed, storeOf, userOf } from './settings/derived.js'
import { joinStored } from './stored-setup.js'

/** A profile for a command that acts for a user, with its code host. What `relay setup` stored completes its settings. */
export interface UserProfile extends Profile {
  readonly user: string
  /** Data of the profile, or an empty database in memory if it has none. */
  readonly database: Database
  readonly tokens: Tokens
  readonly host: CodeHost
  /** The OAuth client of this shell, of `relay setup` or of the sandbox. */
  readonly client: OAuthClient | undefined
  readonly limits: Limits
  /**
   * Returns the user's token. Renews one that expires soon with this shell's client or, without one, through the
   * instance. Warns once if its account is not the one that `relay login` signed in. @throws RelayError as `renewToken`
   */
  readonly owner: () => Promise<TokenOwner>
  /** Warns as `owner`, for a command that does not use the token, or deletes it. @throws RelayError `storage` */
  readonly checkAccount: () => Promise<void>
  /** Saves the store and the code host in the profile, unless an instance runs, which has saved its own. */
  readonly remember: () => void
}

interface UserOptions {
  /** `create`: creates the profile's data if there is none and no instance runs. Default: `open`. */
  readonly data?: 'open' | 'create'
  /** True: the command signs the user in, which needs no stored token. Default: false. */
  readonly signsIn?: boolean
}

/** Opens a profile for its user. Sends nothing to the code host. @throws RelayError as {@link openProfile} and {@link asUser} */
export async function openUserProfile(
  shell: Shell,
  flags: Flags,
  options: ProfileOptions & UserOptions = {},
): Promise<UserProfile> {
  return asUser(shell, await openProfile(shell, flags, options), options)
}

/**
 * Completes an open profile for its user. Disposing of the result closes the data that this opens.
 * @throws RelayError `settings` when settings are missing, when the data is in the instance's memory, and for a code host
 * that only the working folder names; `usage` for an invalid user name; `unavailable` for a sandbox that does not run;
 * `storage`
 */
export async function asUser(
  shell: Shell,
  profile: Profile,
  { data = 'open', signsIn = false }: UserOptions = {},
): Promise<UserProfile> {
  const { own, instance, saved } = profile
  const user = userOf(profile.values)
  if (instance?.store === 'memory') throw onlyInMemory(instance, 'its tokens')
  if (!instance && saved?.sandbox && !own.origins.provider) throw notRunning(profile)
  await using closing = new Disposal()
  const database = closing.use(await openUserData(shell, profile, data === 'create' && !instance))
  const { secrets, store } = database
  const joined = await joinStored({ own, instance, saved, signsIn }, secrets)
  const { values } = joined
  const limits = { ...TIME_LIMITS, ...shell.seams?.limits }
  const host = openNamedHost(joined, limits.codeHost)
  const clock = shell.seams?.clock ?? systemClock
  const tokens = new Tokens(secrets, clock)
  if (host.refusal)
    throw await refusalFor(profile, user, { host, store, tokens, signsIn, log: shell.out.log })
  const ofSandbox = instance?.provider === 'sandbox' && findSandboxClient(secrets, instance.providerUrl)
  const client = (await ofSandbox) || clientOf(values)
  const parts = { host, client, store, tokens, tokenTtl: values.tokenTtl, log: shell.out.log, clock }
  const resources = closing.move()
  return {
    ...profile,
    ...joined,
    user,
    database,
    data: async () => database,
    journal: async () => new Journal(database.sql),
    tokens,
    host,
    client,
    limits,
    ...tokenAccess(shell, profile, user, parts),
    remember() {
      const { provider, providerUrl } = codeHostOf(joined)
      if (!instance) remember(joined, { provider, providerUrl }, saved?.sandbox ?? false)
    },
    [Symbol.asyncDispose]: () => resources[Symbol.asyncDispose](),
  }
}

// The user's token

/** Functions that read, renew and check the user's token. */
function tokenAccess(
  { signal, out }: Shell,
  profile: Profile,
  user: string,
  parts: RenewParts & { readonly tokens: Tokens; readonly clock: Clock },
) {
  const { instance } = profile
  const { client, tokens, host, clock } = parts
  const find = async (): Promise<TokenOwner> => {
    if (client || !instance?.clientId) return renewToken(parts, user, { signal })
    const owner = await tokens.get(user)
    if (owner?.origin === host.origin && isFresh(owner, clock())) return owner
    // Also without a token, or with one of another code host: the instance reports the reason.
    await callInstance(instance, 'renew', { userId: user }, { signal })
    const renewed = await tokens.get(user)
    if (!renewed) throw signInAgain(`The token of ${user} was revoked meanwhile`)
    return renewed
  }
  let isChecked = false
  const check = async (
    owner: Pick<TokenOwner, 'userId' | 'origin' | 'account'> | undefined,
  ): Promise<void> => {
    const other =
      owner && !isChecked ? await tokens.otherAccount(owner, { isNamed: isUserNamed(profile) }) : undefined
    isChecked = true
    if (!owner || !other) return
    const text = `${otherAccountText(owner, other)}. ${loginCommandLine(profile)} replaces it`
    out.remark(text, marked({ otherAccount: outside(other) }))
  }
  return {
    async owner(): Promise<TokenOwner> {
      const signIn = signInCommand(profile, Boolean(client ?? instance?.clientId))
      const owner = await find().catch(withCommand(signIn))
      await check(owner)
      return owner
    },
    async checkAccount(): Promise<void> {
      const refreshable = await tokens.refreshable(user)
      await check((await tokens.get(user)) ?? (refreshable && { ...refreshable, userId: user }))
    },
  }
}

/**
 * Chooses the error of a command for a code host that only the folder names. The error for a stored token names the only
 * code host that it is sent to. If a client secret or the token of a new sign-in would be sent, the refusal itself is the
 * error.
 */
async function refusalFor(
  profile: Profile,
  user: string,
  { signsIn, ...parts }: Omit<RenewParts, 'client'> & { readonly signsIn: boolean },
): Promise<unknown> {
  const { host, tokens } = parts
  const found = (await tokens.get(user)) ?? (await tokens.refreshable(user))
  if (signsIn || profile.values.clientSecret || !found) return host.refusal
  const explain = withCommand(signInCommand(profile, false))
  return renewToken({ ...parts, client: undefined }, user)
    .catch(explain)
    .then(
      () => host.refusal,
      (error: unknown) => error,
    )
}

/** Opens the profile's data, or an empty database in memory. Creates none for a code host that only the folder names. */
async function openUserData(shell: Shell, profile: Profile, isNew: boolean): Promise<Database> {
  const { values, folder, hostRefusal } = profile
  const hasData = mayHaveData(storeOf(values), folder)
  if (hostRefusal && !hasData) throw hostRefusal
  const create = isNew && !hostRefusal
  return openStored(shell, profile, { create, ...(!create && !hasData && { kind: 'memory' }) })
}
