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

// All that the command line knows of code hosts, sign-ins and what setup stored is joined here.

/** What a command that acts for a user needs: the profile's data and its code host. */
export type Session = Awaited<ReturnType<typeof openSession>>

/**
 * Opens the data of a profile and its code host, to which it sends nothing. Makes none, unless `create` says so and no instance runs.
 * `signsIn`: for a sign-in, which needs no token that is stored.
 * @throws RelayError `settings` when settings are missing, or the data is in the instance's memory; `usage` for the user's name;
 * `unavailable` for a sandbox that does not run; `settings` also for a code host that only the working folder names; `storage`
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
    /** With the OAuth client that relay setup stored, where none is set. */
    attached: { ...attached, ...joined },
    /** The profile's data; an empty one in memory where it has none. */
    database,
    journal: new Journal(database.sql),
    tokens,
    host,
    limits,
    user,
    client,
    ...ownerAccess(shell, attached, user, parts),
    /** Has the profile remember its store and code host, as a service does that runs; with an instance, nothing. */
    remember() {
      const place = { provider: name, providerUrl: url }
      if (!instance) remember(joined, place, saved?.sandbox ?? false)
    },
    [Symbol.asyncDispose]: () => resources[Symbol.asyncDispose](),
  }
}

/** How a command comes to the user's token. */
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
    // Also for no token, or one of another code host: the instance says why.
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
     * The user's token, renewed if it soon expires: with this shell's client, else by the instance. Warns, once, where it is of an account
     * that `relay login` did not sign in as. @throws RelayError as `renewToken`
     */
    async owner(): Promise<TokenOwner> {
      const signIn = signInCommand(attached, Boolean(client ?? instance?.clientId))
      const owner = await find().catch(withCommand(signIn))
      await check(owner)
      return owner
    },
    /** The same warning where the token is not used, or is about to go. @throws RelayError `storage` */
    async checkAccount(): Promise<void> {
      const refreshable = await tokens.refreshable(user)
      await check((await tokens.get(user)) ?? (refreshable && { ...refreshable, userId: user }))
    },
  }
}

/**
 * The error of a command for a code host that only the folder names. A token that is stored goes to its own code host alone, and the error of
 * that says which; not where a client secret, or a token of a new sign-in, would be sent.
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

/** The profile's data, or an empty one in memory. Makes none for a code host that only the folder names. */
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

/** The command by which the user signs in, in another shell, too. */
export function loginCommandLine(about: SignIn): string {
  const { values, origins } = about
  return commandFor(about, origins.user?.kind === 'flag' ? `login --user ${values.user}` : 'login')
}

/** The next step of a user who is not signed in. */
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

/** The user that a command acts for: else the name on this machine. @throws RelayError `usage` when that is not a valid user id */
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

/** Whether the user has chosen the user id, rather than this machine or a file of the working folder. */
export function isUserNamed({ origins }: Pick<Attached, 'origins'>): boolean {
  return origins.user !== undefined && !isOfFolder(origins.user)
}

// What relay setup stored

export async function readStoredClient(
  secrets: Pick<Store, 'get'>,
  about: Advised,
): Promise<StoredClient | undefined> {
  const setup = await readRecord(secrets)
  return setup && { ...setup, client: await readClient(secrets, setup, (line) => commandFor(about, line)) }
}

/** What `relay setup` stored in the profile. As {@link openData}. */
export async function readSetup(
  attached: Parameters<typeof openData>[0],
  options: { readonly create?: boolean } = {},
): Promise<StoredClient | undefined> {
  await using database = await openData(attached, options)
  return (
    database && (await readStoredClient(database.secrets, { ...attached, profile: attached.values.profile }))
  )
}

/** The OAuth client of the settings. @throws RelayError `settings` for half of one */
export function clientOf({ clientId, clientSecret }: Values): OAuthClient | undefined {
  if ((clientId === undefined) !== (clientSecret === undefined))
    throw new RelayError('settings', 'Set both RELAY_CLIENT_ID and RELAY_CLIENT_SECRET, or neither of them')
  return clientId && clientSecret ? { id: clientId, secret: new Secret(clientSecret) } : undefined
}

/**
 * The settings with what the profile's data completes: the client that `relay setup` stored and, where nothing else but the folder names the
 * code host, where its users have signed in. @throws RelayError `storage`
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

/** The code host of the settings. Calls to one that only the folder names are refused. @throws RelayError `settings` as `codeHostOf` */
export function openNamedHost(joined: Joined, timeLimit?: number): CodeHost {
  const { provider: name, providerUrl: url, hostRefusal: refusal } = codeHostOf(joined)
  return openHost({ name, url, refusal, ...(timeLimit !== undefined && { timeLimit }) })
}

/** @throws RelayError `settings` when its address is not known */
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
  // Any sandbox that runs alone will do, unless a profile is named.
  const profile = origins.profile ? values.profile : SANDBOX_PROFILE
  throw new RelayError(
    'settings',
    provider === 'sandbox'
      ? `The sandbox is not running. Start it with ${startCommand({ ...about, profile, saved: { sandbox: true } })}, or set RELAY_PROVIDER_URL to its address`
      : `RELAY_PROVIDER_URL is not set. Set it to the address of your ${provider}, for example https://git.example.com`,
  )
}

// What a service needs

interface ServiceOptions {
  readonly sandbox: boolean
  readonly inspect: boolean
  /** The sources that are received from, with their secrets. */
  readonly readSources: (joined: Joined, data: Database) => Promise<readonly ReadSource[]>
  /** Reads the same settings again, and says what of a change needs a restart, or is probably not meant. */
  readonly rereadParts: () => Promise<RereadParts>
}

/** Settings that were read again. */
export interface RereadParts extends Omit<Reread, 'settings' | 'warnings'> {
  readonly parts: Parts
  /** What is valid in them and probably not meant, at a code host. Called once the sources are read, too. */
  readonly warnings: (provider: string) => Reread['warnings']
}

/**
 * The settings of a service. What the profile's data completes is known once the service has the profile: the webhook secret that it makes,
 * what relay setup stored, and the sources.
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
  // A mistake is found before a profile is made for it.
  if (!mayHaveData(place.store, place.folder))
    complete(first, { webhookSecrets: { current: new Secret('') }, routes: routeSettings(first) })
  return {
    ...place,
    host,
    port,
    maxBody,
    async complete(database) {
      // A sandbox makes its own client.
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

/** What a running service reads again, too. It makes the webhook secret if there is none. */
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

/** What stays as it is while a service runs, but for its place and its code host. */
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
