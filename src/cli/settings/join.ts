import type { Setup } from '../../auth/setup.js'
import { RelayError } from '../../base/errors.js'
import { shellWord } from '../../base/text.js'
import { PROVIDER_NAMES } from '../../base/source-names.js'
import type { OAuthClient } from '../../base/settings.js'
import { isSharedAddress } from '../../base/shared-store.js'
import type { SavedProfile } from '../../instance/profile.js'
import type { RunningInstance } from '../../instance/protocol.js'
import type { Values } from './parse.js'
import { isOfFolder, type LoadedSettings, type Origin, type SettingsWithOrigins } from './read.js'
import { GITHUB_URL } from './table.js'

/** Data of `relay setup`, with the client's secret. */
export type StoredClient = Setup & { readonly client: OAuthClient }

export interface Parts {
  /** Settings of flags, variables and files for this process. */
  readonly own: LoadedSettings
  /** The running instance that the process works with. */
  readonly instance?: RunningInstance | undefined
  readonly setup?: StoredClient | undefined
  /** Saved last use of the profile. */
  readonly saved?: SavedProfile | undefined
  /** Addresses of the code hosts at which the user has signed in. */
  readonly signIns?: readonly string[]
  /** True if a new token or a client secret is about to be sent. A stored token is sent only to its own code host. */
  readonly signsIn?: boolean
}

/** Settings of a command, and the running instance that it works with. */
export interface InstanceSettings extends SettingsWithOrigins {
  readonly instance?: RunningInstance | undefined
}

/** Effective settings of a process, with a possible refusal of its code host. */
export interface Joined extends LoadedSettings {
  /**
   * The setting that alone names the code host, if that is in a file of the working folder. Undefined if the user names
   * it, or nothing does.
   */
  readonly folderHost: string | undefined
  /** Error for any request to a code host that only the folder names. */
  readonly hostRefusal: RelayError | undefined
}

const SETUP: Origin = { kind: 'setup', text: 'setup' }
const SAVED: Origin = { kind: 'profile', text: 'the last relay serve' }

/**
 * Joins the settings of a process. Each comes from the first of these places that has it:
 *
 * 1. the running instance: code host and store
 * 2. a flag
 * 3. a variable of the environment, or the file that `<NAME>_FILE` names
 * 4. `.env` in the working folder
 * 5. the project's relay.json
 * 6. the user's config.json: its section for the profile, then its common part
 * 7. the data of `relay setup`: code host and OAuth client
 * 8. the saved last use of the profile: store and code host
 * 9. the default, for `--tunnel` without a value that of the flag
 *
 * `openSettings` reads 2 to 6 and 9. Provider and address are one setting: a place that sets either of them sets the
 * code host. The stored client is used only for its own code host, since its secret must reach no other, and only if
 * neither this process nor the instance has another client.
 * @throws RelayError `settings` if this version of relay does not know the instance's code host, and for a shared store
 * of a profile that only the folder names: the password and the key of this shell would be sent there
 */
export function joinSettings(parts: Parts): Joined {
  const joined = joinValues(parts)
  return { ...joined, ...refusalOf(parts, joined) }
}

/**
 * Returns the settings of this process with the store of the profile, which is known before its data is. @throws
 * RelayError `settings` as {@link joinSettings}
 */
export function withStore(parts: Parts): LoadedSettings {
  const { own, instance, saved } = parts
  const isSaved = !instance && saved !== undefined && !own.origins.store
  const store = instance ? servedBy(instance).store : isSaved ? saved.store : own.values.store
  const named = profileOfFolder(parts)
  if (named !== undefined && !own.origins.store && isSharedAddress(store)) {
    const { profile } = own.values
    throw new RelayError(
      'settings',
      `The shared store of profile ${profile} is not used, since only this folder names the profile (${named}). Name it yourself: with --profile ${profile}, or with export RELAY_PROFILE=${profile}`,
    )
  }
  const origins = isSaved ? { ...own.origins, store: SAVED } : own.origins
  return { ...own, values: { ...own.values, store }, origins }
}

/** Returns the refusal of the joined settings' code host, if only the folder names it. */
export function refusalOf(
  parts: Parts,
  { values: { profile, providerUrl: address } }: LoadedSettings,
): Omit<Joined, keyof LoadedSettings> {
  const folderHost = address === undefined ? undefined : folderHostOf(parts, address)
  if (address === undefined || folderHost === undefined) return { folderHost, hostRefusal: undefined }
  const what = parts.own.origins.clientSecret?.text ?? 'A token'
  const hostRefusal = new RelayError(
    'settings',
    folderHost === profileOfFolder(parts)
      ? `${what} is not sent to the code host of a profile that only this folder names: ${address} (${folderHost}). If you trust it, name the profile yourself: with --profile ${profile}, or with export RELAY_PROFILE=${profile}`
      : `${what} is not sent to an address that only this folder names: ${address} (${folderHost}). If you trust it, name it yourself: with --provider-url, with export RELAY_PROVIDER_URL=${shellWord(address)}, or as providerUrl in your config.json`,
  )
  return { folderHost, hostRefusal }
}

/**
 * Returns the setting that alone names the profile, if that is in a file of the working folder: it chooses among the
 * code hosts and stores of profiles.
 */
function profileOfFolder({ own: { origins } }: Parts): string | undefined {
  return origins.profile && isOfFolder(origins.profile) ? origins.profile.text : undefined
}

/**
 * Returns the setting that alone names the code host's address, if that is in a file of the working folder, or of the
 * folder in which the instance was started. Its author can be anyone, and its next version can name any other address.
 *
 * Undefined for an address that the user has named: in flags, in the environment or in config.json; by `relay setup`,
 * by a sign-in, or by serving the profile there; and for GitHub's, if it would be used without the folder. If the
 * folder names only the profile, only a sign-in counts, for its own token. A client secret of the settings belongs to
 * no address, so only a setting next to it names one for it.
 */
function folderHostOf(parts: Parts, address: string): string | undefined {
  const { own, instance, setup, saved, signIns = [], signsIn = false } = parts
  const origin = own.origins.providerUrl ?? own.origins.provider
  const chosen = origin ? undefined : profileOfFolder(parts)
  const ofFolder = origin && isOfFolder(origin) ? origin.text : chosen
  // The user has started the instance, but not for a secret that is given now. The sandbox of relay itself is on this
  // machine.
  const isNew = (signsIn || own.origins.clientSecret !== undefined) && !instance?.sandbox
  const named = instance ? (instance.folderHost ?? (isNew ? chosen : undefined)) : ofFolder
  if (named === undefined) return undefined
  const { userHost } = own
  const ofProfile = [setup?.providerUrl, ...(saved?.sandbox ? [] : [saved?.providerUrl])]
  // After an embedded sandbox ends, any other program can use its address.
  const signedIn = saved?.sandbox || (chosen !== undefined && signsIn) ? [] : signIns
  const earlier = [...(chosen === undefined ? ofProfile : []), ...signedIn]
  const otherwise = setup?.providerUrl ?? saved?.providerUrl ?? GITHUB_URL
  const isGitHub = otherwise === GITHUB_URL || chosen !== undefined
  const set = userHost ? userHost.providerUrl : isGitHub ? GITHUB_URL : undefined
  const ofUser = own.origins.clientSecret ? [set] : [set, ...earlier]
  return ofUser.includes(address) ? undefined : named
}

/** Joins the values. @throws RelayError `settings` as {@link joinSettings} */
export function joinValues(parts: Parts): LoadedSettings {
  const { own, instance, setup, saved } = parts
  let { values, origins } = withStore(parts)
  const take = (given: Partial<Values>, origin: Origin): void => {
    values = { ...values, ...given }
    const names = Object.keys(given).map((name) => [name, origin])
    origins = { ...origins, ...Object.fromEntries(names) }
  }
  if (instance) {
    const { clientId: _, ...others } = values
    // The instance has the OAuth client. A client id alone, as in relay.json, is then no mistake.
    if (instance.clientId && values.clientSecret === undefined) values = others
    values = { ...values, ...servedBy(instance) }
  } else if (!origins.provider && !origins.providerUrl) {
    if (setup) take({ provider: setup.provider, providerUrl: setup.providerUrl }, SETUP)
    else if (saved?.provider && saved.providerUrl)
      take({ provider: saved.provider, providerUrl: saved.providerUrl }, SAVED)
  }
  const { clientId, clientSecret, provider, providerUrl } = values
  if (!setup || clientSecret !== undefined) return { ...own, values, origins }
  const { id, secret } = setup.client
  const isOther = [clientId, instance?.clientId].some((known) => known && known !== id)
  if (!isOther && setup.provider === provider && setup.providerUrl === providerUrl)
    take({ clientSecret: secret.reveal(), ...(clientId === undefined && { clientId: id }) }, SETUP)
  return { ...own, values, origins }
}

/**
 * Returns the code host and the store of an instance. @throws RelayError `settings` for a code host that this version
 * of relay does not know
 */
export function servedBy(instance: RunningInstance): Pick<Values, 'provider' | 'providerUrl' | 'store'> {
  const { pid, providerUrl, store } = instance
  const provider = PROVIDER_NAMES.find((known) => known === instance.provider)
  if (provider) return { provider, providerUrl, store }
  throw new RelayError(
    'settings',
    `Process ${pid} serves the code host ${instance.provider}, which this version of relay does not know`,
  )
}
