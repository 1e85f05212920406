import { userInfo } from 'node:os'
import { otherAccountText } from '../auth/accounts.js'
import { isFresh, renewToken, type RenewParts, signInAgain } from '../auth/renew.js'
import { readClient, loadSetup as readRecord } from '../auth/setup.js'
import { Disposal } from '../base/lifetime.js'
import { SANDBOX_PROFILE } from '../base/command-line.js'
import { RelayError } from '../base/errors.js'
import { TIME_LIMITS } from '../base/seams.js'
import { Secret } from '../base/secret.js'
import {
  type OAuthClient,
  parseUserId,
  type ReadLiveSettings,
  type ReadSettings,
  type ReadSource,
} from '../base/settings.js'
import { type Clock, systemClock } from '../base/time.js'
import type { CodeHost } from '../codehost/host.js'
import { openHost } from '../codehost/hosts.js'
import { Journal } from '../journal/journal.js'
import { findSandboxClient } from '../sandbox/client.js'
import type { Reread } from '../serve/instance.js'
import type { SandboxedSettings, SettingsReader } from '../serve/start.js'
import type { Store } from '../store/kv.js'
import { type Database, mayHaveData, openDatabase } from '../store/open.js'
import { type TokenOwner, Tokens } from '../tokens/tokens.js'
import { makeProfileSecret } from '../webhook/profile-secret.js'
import type { Shell } from './command.js'
import { marked, outside } from './output/outside.js'
import { callInstance } from './instance-client.js'
import {
  type Advised,
  type Attached,
  commandFor,
  notRunning,
  onlyInMemory,
  openData,
  profileFolder,
  remember,
  routeSettings,
  startCommand,
  storeOf,
} from './profile.js'
import { joinSettings, type Joined, type Parts, type StoredClient } from './settings/join.js'
import type { Values } from './settings/parse.js'
import { isOfFolder, type LoadedSettings } from './settings/read.js'

// Code hosts, sign-ins and the data of setup, joined for the commands.

/** Parts of a command that acts for a user: the profile's data and its code host. */
export type Session = Awaited<ReturnType<typeof openSession>>

/**
 * Opens the data of a profile and its code host, without a request. Creates no data, except with `create` while no
 * instance runs. `signsIn` is for a sign-in, which needs no stored token.
 * @throws RelayError `settings` for missing settings, for data in the instance's memory, or for a code host that only
 * the working folder names; `usage` for the user's name; `unavailable` for a sandbox that does not run; `storage`
 */
export async function openSession(
  shell: Shell,
  attached: Attached,
  { create = false, signsIn = false }: { readonly create?: boolean; readonly signsIn?: boolean } = {},
) {
  const { own, instance, saved } = attached
  const user = userOf(attached.values)
  if (instance?.store === 'memory') throw onlyInMemory(instance, 'its tokens')
  if (!instance && saved?.sandbox && !own.origins.provider) throw notRunning(attached)
  await using closing = new Disposal()
  const database = closing.use(await openSessionData(shell, attached, create && !instance))
  const { secrets, store } = database
  const joined = await joinData({ ...attached, signsIn }, secrets)
  const { values } = joined
  const { provider: name, providerUrl: url } = codeHostOf(joined)
  const limits = { ...TIME_LIMITS, ...shell.seams?.limits }
  const host = openNamedHost(joined, limits.codeHost)
  const clock = shell.seams?.clock ?? systemClock
  const tokens = new Tokens(secrets, clock)
  if (host.refusal)
    throw await refusalFor(attached, user, { host, store, tokens, signsIn, log: shell.out.log })
  const ofSandbox = instance?.provider === 'sandbox' && findSandboxClient(secrets, instance.providerUrl)
  const client = (await ofSandbox) || clientOf(values)
  const parts = { host, client, store, tokens, tokenTtl: values.tokenTtl, log: shell.out.log, clock }
  const resources = closing.move()
  return {
    /** Settings, with the OAuth client that relay setup stored if none is set. */
    attached: { ...attached, ...joined },
    /** The profile's data; an empty one in memory if it has none. */
    database,
    journal: new Journal(database.sql),
    tokens,
    host,
    limits,
    user,
    client,
    ...ownerAccess(shell, attached, user, parts),
    /** Saves store and code host of the profile, as a running service does. Does nothing with an instance. */
    remember() {
      const place = { provider: name, providerUrl: url }
      if (!instance) remember(joined, place, saved?.sandbox ?? false)
    },
    [Symbol.asyncDispose]: () => resources[Symbol.asyncDispose](),
  }
}

/** Makes the access to the user's token. */
function ownerAccess(
  { signal, out }: Shell,
  attached: Attached,
  user: string,
  parts: RenewParts & { readonly tokens: Tokens; readonly clock: Clock },
) {
  const { instance } = attached
  const { client, tokens, host, clock } = parts
  const find = async (): Promise<TokenOwner> => {
    if (client || !instance?.clientId) return renewToken(parts, user, { signal })
    const owner = await tokens.get(user)
    if (owner?.origin === host.origin && isFresh(owner, clock())) return owner
    // Called even without a token, or with one of another code host: the instance explains the error.
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
      owner && !isChecked ? await tokens.otherAccount(owner, { isNamed: isUserNamed(attached) }) : undefined
    isChecked = true
    if (!owner || !other) return
    const text = `${otherAccountText(owner, other)}. ${loginCommandLine(attached)} replaces it`
    out.remark(text, marked({ otherAccount: outside(other) }))
  }
  return {
    /**
     * Returns the user's token, renewed if it soon expires: with this shell's client, else by the instance. Warns once
     * if its account is not the one of `relay login`. @throws RelayError as `renewToken`
     */
    async owner(): Promise<TokenOwner> {
      const signIn = signInCommand(attached, Boolean(client ?? instance?.clientId))
      const owner = await find().catch(withCommand(signIn))
      await check(owner)
      return owner
    },
    /** Warns of another account without using the token. @throws RelayError `storage` */
    async checkAccount(): Promise<void> {
      const refreshable = await tokens.refreshable(user)
      await check((await tokens.get(user)) ?? (refreshable && { ...refreshable, userId: user }))
    },
  }
}

/**
 * Returns the error for a code host that only the folder names. A stored token is sent only to its own code host, and
 * its error names that. This does not apply if a client secret, or a token of a new sign-in, would be sent.
 */
async function refusalFor(
  attached: Attached,
  user: string,
  { signsIn, ...parts }: Omit<RenewParts, 'client'> & { readonly signsIn: boolean },
): Promise<unknown> {
  const { host, tokens } = parts
  const found = (await tokens.get(user)) ?? (await tokens.refreshable(user))
  if (signsIn || attached.values.clientSecret || !found) return host.refusal
  const explain = withCommand(signInCommand(attached, false))
  return renewToken({ ...parts, client: undefined }, user)
    .catch(explain)
    .then(
      () => host.refusal,
      (error: unknown) => error,
    )
}

/** Opens the profile's data, or an empty one in memory. Creates none for a code host that only the folder names. */
async function openSessionData({ out }: Shell, attached: Attached, isNew: boolean): Promise<Database> {
  const { values, folder, hostRefusal } = attached
  const place = storeOf(values)
  const hasData = mayHaveData(place, folder)
  if (hostRefusal && !hasData) throw hostRefusal
  const create = isNew && !hostRefusal
  const onSlow = (text: string): void => out.say(text)
  const kind = create || hasData ? place : 'memory'
  return openDatabase({ kind, folder, create, startCommand: startCommand(attached), onSlow })
}

type SignIn = Advised & Pick<Attached, 'values'>

/** Formats the command with which the user signs in, also in another shell. */
export function loginCommandLine(about: SignIn): string {
  const { values, origins } = about
  return commandFor(about, origins.user?.kind === 'flag' ? `login --user ${values.user}` : 'login')
}

/** Formats the next step of a user who is not signed in. */
export function signInCommand(attached: SignIn, hasClient: boolean): string {
  return hasClient ? loginCommandLine(attached) : commandFor(attached, 'setup')
}

/** Adds the command to an error that only a new sign-in resolves. */
export function withCommand(command: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof RelayError && error.kind === 'unauthenticated')) throw error
    throw new RelayError(error.kind, `${error.message}. Run ${command}`, { cause: error })
  }
}

/**
 * Returns the user that a command acts for; by default the name on this machine. @throws RelayError `usage` if that is
 * not a valid user id
 */
export function userOf({ user }: Pick<Values, 'user'>): string {
  if (user !== undefined) return user
  try {
    return parseUserId(userInfo().username)
  } catch (cause) {
    // A container's user can have only a number, and a Windows user a name with spaces.
    const text = 'Your name on this machine is not a valid user id. Give --user, or set RELAY_USER'
    throw new RelayError('usage', text, { cause })
  }
}

/** True if the user has chosen the user id, rather than this machine or a file of the working folder. */
export function isUserNamed({ origins }: Pick<Attached, 'origins'>): boolean {
  return origins.user !== undefined && !isOfFolder(origins.user)
}

// Data of relay setup

export async function readStoredClient(
  secrets: Pick<Store, 'get'>,
  about: Advised,
): Promise<StoredClient | undefined> {
  const setup = await readRecord(secrets)
  return setup && { ...setup, client: await readClient(secrets, setup, (line) => commandFor(about, line)) }
}

/** Reads the data that `relay setup` stored in the profile. @throws as {@link openData} */
export async function readSetup(
  attached: Parameters<typeof openData>[0],
  options: { readonly create?: boolean } = {},
): Promise<StoredClient | undefined> {
  await using database = await openData(attached, options)
  return (
    database && (await readStoredClient(database.secrets, { ...attached, profile: attached.values.profile }))
  )
}

/** Returns the OAuth client of the settings. @throws RelayError `settings` for half of one */
export function clientOf({ clientId, clientSecret }: Values): OAuthClient | undefined {
  if ((clientId === undefined) !== (clientSecret === undefined))
    throw new RelayError('settings', 'Set both RELAY_CLIENT_ID and RELAY_CLIENT_SECRET, or neither of them')
  return clientId && clientSecret ? { id: clientId, secret: new Secret(clientSecret) } : undefined
}

/**
 * Joins the settings with the profile's data: the client of `relay setup` and, if only the folder names the code host,
 * the hosts at which users have signed in. @throws RelayError `storage`
 */
export async function joinData(parts: Parts, secrets: Store): Promise<Joined> {
  const own = {
    ...parts,
    setup: await readStoredClient(secrets, { ...parts.own, profile: parts.own.values.profile }),
  }
  const joined = joinSettings(own)
  return joined.hostRefusal
    ? joinSettings({ ...own, signIns: await new Tokens(secrets).addresses() })
    : joined
}

/**
 * Opens the code host of the settings. Calls to one that only the folder names are refused. @throws RelayError
 * `settings` as `codeHostOf`
 */
export function openNamedHost(joined: Joined, timeLimit?: number): CodeHost {
  const { provider: name, providerUrl: url, hostRefusal: refusal } = codeHostOf(joined)
  return openHost({ name, url, refusal, ...(timeLimit !== undefined && { timeLimit }) })
}

/** Returns the code host of the settings. @throws RelayError `settings` if its address is not known */
export function codeHostOf({
  hostRefusal,
  ...about
}: Pick<Joined, keyof LoadedSettings | 'hostRefusal'>): Pick<
  ReadSettings,
  'provider' | 'providerUrl' | 'hostRefusal'
> {
  const { values, origins } = about
  const { provider, providerUrl } = values
  if (providerUrl !== undefined) return { provider, providerUrl, hostRefusal }
  // Without a named profile, any sandbox that runs alone will do.
  const profile = origins.profile ? values.profile : SANDBOX_PROFILE
  throw new RelayError(
    'settings',
    provider === 'sandbox'
      ? `The sandbox is not running. Start it with ${startCommand({ ...about, profile, saved: { sandbox: true } })}, or set RELAY_PROVIDER_URL to its address`
      : `RELAY_PROVIDER_URL is not set. Set it to the address of your ${provider}, for example https://git.example.com`,
  )
}

// Settings of a service

interface ServiceOptions {
  readonly sandbox: boolean
  readonly inspect: boolean
  /** Reads the sources of a service, with their secrets. */
  readonly readSources: (joined: Joined, data: Database) => Promise<readonly ReadSource[]>
  /** Reads the settings again, and describes changes that need a restart or are probably a mistake. */
  readonly rereadParts: () => Promise<RereadParts>
}

/** Settings that were read again. */
export interface RereadParts extends Omit<Reread, 'settings' | 'warnings'> {
  readonly parts: Parts
  /** Finds valid settings that are probably a mistake for a code host. Called after the sources are read, too. */
  readonly warnings: (provider: string) => Reread['warnings']
}

/**
 * Makes the reader of a service's settings. The profile's data completes them once the service has the profile: the
 * generated webhook secret, the data of relay setup, and the sources.
 * @throws RelayError `settings`, also from `complete`; `storage` from `complete`
 */
export function serviceSettings(parts: Parts, options: ServiceOptions): SettingsReader {
  const { sandbox, rereadParts } = options
  const first = joinSettings(parts)
  const { host, port, maxBody } = first.values
  const place = { folder: profileFolder(first.values), store: storeOf(first.values) }
  const complete = (joined: Joined, live: ReadLiveSettings): ReadSettings | SandboxedSettings => {
    const fixed = { ...fixedSettings(joined, options.inspect), ...place, host, port, maxBody, ...live }
    return sandbox
      ? { ...fixed, sandbox: { port: first.values.sandboxPort } }
      : { ...fixed, ...codeHostOf(joined) }
  }
  // Checked now, so that a mistake is found before a profile is made for it.
  if (!mayHaveData(place.store, place.folder))
    complete(first, { webhookSecrets: { current: new Secret('') }, routes: routeSettings(first) })
  return {
    ...place,
    host,
    port,
    maxBody,
    async complete(database) {
      // A sandbox generates its own client.
      const joined = sandbox ? first : await joinData(parts, database.secrets)
      return complete(joined, await readLive(joined, database, options))
    },
    async reread(database, { provider }) {
      const { parts: now, restart, warnings } = await rereadParts()
      const settings = await readLive(joinSettings(now), database, options)
      return { settings, restart, warnings: warnings(provider) }
    },
  }
}

/** Reads the settings that a running service replaces. Generates the webhook secret if there is none. */
async function readLive(
  joined: Joined,
  database: Database,
  { readSources }: Pick<ServiceOptions, 'readSources'>,
): Promise<ReadLiveSettings> {
  const { webhookSecret: given, webhookSecretPrevious: previous } = joined.values
  const sources = await readSources(joined, database)
  const current = given ? new Secret(given) : await makeProfileSecret(database.store)
  const webhookSecrets = { current, previous: previous ? new Secret(previous) : undefined }
  return { webhookSecrets, sources, routes: routeSettings(joined) }
}

/** Returns the settings that do not change while a service runs, except its place and its code host. */
function fixedSettings({ values }: Joined, inspect: boolean) {
  return {
    profile: values.profile,
    oauthClient: clientOf(values),
    allowedHosts: values.allowHost ?? [],
    inspect,
    inspectHosts: values.inspectHost ?? [],
    metrics: values.metrics === 'on',
    publicUrl: values.publicUrl,
    baseUrl: values.baseUrl,
    tokenTtl: values.tokenTtl,
    concurrency: values.concurrency,
    onDuplicate: values.onDuplicate,
    keep: values.keep,
    keepMax: values.keepMax,
    tunnel: values.tunnel,
  }
}
