import { otherAccountText } from '../auth/accounts.js'
import { isFresh, renewToken, type RenewParts, signInAgain } from '../auth/renew.js'
import { Disposal } from '../base/lifetime.js'
import { type Limits, TIME_LIMITS } from '../base/seams.js'
import type { OAuthClient } from '../base/settings.js'
import { type Clock, systemClock } from '../base/time.js'
import type { CodeHost } from '../codehost/host.js'
import { findSandboxClient } from '../sandbox/client.js'
import { type TokenOwner, Tokens } from '../tokens/tokens.js'
import { loginCommandLine, notRunning, signInCommand, withCommand } from './advice.js'
import { codeHostOf, openNamedHost } from './code-host.js'
import type { Flags, Shell } from './command.js'
import { callInstance } from './instance-client.js'
import { marked, outside } from './output/outside.js'
import {
  type DataOptions,
  findProfile,
  type FoundProfile,
  openData,
  type Profile,
  type ProfileOptions,
  type ProfileWithData,
  remember,
} from './profile.js'
import { clientOf, isUserNamed, userOf } from './settings/derived.js'

/** A profile for a command that acts for a user, with its code host. */
export interface UserProfile extends ProfileWithData {
  readonly user: string
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

interface UserOptions extends ProfileOptions, Partial<DataOptions> {}

/**
 * Opens a profile for its user. Sends nothing to the code host.
 * @throws RelayError as {@link openProfile} with data; `settings` when settings are missing, and for a code host that
 * only the working folder names; `usage` for an invalid user name; `unavailable` for a sandbox that does not run
 */
export async function openUserProfile(
  shell: Shell,
  flags: Flags,
  { data = 'open', signsIn = false, ...options }: UserOptions = {},
): Promise<UserProfile> {
  return openAsUser(shell, await findProfile(shell, flags, options), { data, signsIn })
}

/** Opens a found profile for its user. @throws RelayError as {@link openUserProfile} */
export async function openAsUser(
  shell: Shell,
  found: FoundProfile,
  options: DataOptions,
): Promise<UserProfile> {
  const { own, instance, saved } = found
  const user = userOf(own.values)
  if (!instance && saved?.sandbox && !own.origins.provider) throw notRunning({ ...own, instance, saved })
  await using closing = new Disposal()
  const profile = closing.use(await openData(shell, found, options))
  const { values, database, hostRefusal } = profile
  const { secrets, store } = database
  const limits = { ...TIME_LIMITS, ...shell.seams?.limits }
  const host = await openNamedHost(profile, limits)
  const clock = shell.seams?.clock ?? systemClock
  const tokens = new Tokens(secrets, clock)
  if (hostRefusal) throw await refusalFor(profile, user, { host, store, tokens, options, log: shell.out.log })
  const ofSandbox = instance?.provider === 'sandbox' && findSandboxClient(secrets, instance.providerUrl)
  const client = (await ofSandbox) || clientOf(values)
  const parts = { host, client, store, tokens, tokenTtl: values.tokenTtl, log: shell.out.log, clock }
  closing.move()
  return {
    ...profile,
    user,
    tokens,
    host,
    client,
    limits,
    ...tokenAccess(shell, profile, user, parts),
    remember() {
      const { provider, providerUrl } = codeHostOf(profile)
      if (!instance) remember(profile, { provider, providerUrl }, saved?.sandbox ?? false)
    },
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
  { options, ...parts }: Omit<RenewParts, 'client'> & { readonly options: DataOptions },
): Promise<unknown> {
  const { host, tokens } = parts
  const found = (await tokens.get(user)) ?? (await tokens.refreshable(user))
  if (options.signsIn || profile.values.clientSecret || !found) return host.refusal
  const explain = withCommand(signInCommand(profile, false))
  return renewToken({ ...parts, client: undefined }, user)
    .catch(explain)
    .then(
      () => host.refusal,
      (error: unknown) => error,
    )
}
