import { SANDBOX_PROFILE } from '../../../base/command-line.js'
import { aborted } from '../../../base/wait.js'
import { RelayError, toRelayError } from '../../../base/errors.js'
import { isLoopback } from '../../../base/address.js'
import { HOST_KINDS } from '../../../codehost/hosts.js'
import { Routing } from '../../../dispatch/routes.js'
import { readSavedProfile } from '../../../instance/profile.js'
import type { HookPlan } from '../../../serve/hooks.js'
import { start, type Started } from '../../../serve/serve.js'
import { type Database, mayHaveData } from '../../../store/open.js'
import { NotMigrated } from '../../../store/schema.js'
import { freeBytes, RESERVE } from '../../../store/sqlite.js'
import { pathOf } from '../../../webhook/signature.js'
import { type Flags, type Shell, shellWith } from '../../command.js'
import type { Output } from '../../output/output.js'
import { dim, tilde } from '../../output/text.js'
import {
  commandFor,
  commandPlace,
  explainPort,
  openData,
  profileFolder,
  publication,
  routeSettings,
  sharedSecretText,
  startCommand,
  storeOf,
} from '../../profile.js'
import {
  joinData,
  loginCommand,
  serviceSettings,
  isUserNamed,
  signInCommand,
  userOf,
  withCommand,
} from '../../session.js'
import { join, type Joined, type Parts } from '../../settings/join.js'
import { type Loaded, openSettings } from '../../settings/read.js'
import type { Values } from '../../settings/parse.js'
import { hostInUrl, isUnsigned, servedSources, type SetSource } from '../../sources.js'
import { formatRepo, parseRepo } from '../../target.js'
import { banner, BANNER_INDENT, bannerObject } from './banner.js'
import { LiveOutput } from './events.js'
import { listenToKeys, routeWarnings, waitingText, watchSettings } from './terminal.js'

interface ServeFlags extends Flags {
  readonly hook?: readonly string[]
  readonly catchUp?: boolean
  readonly inspect?: boolean
  readonly allowUnsigned?: boolean
}

/** How long a stop may take without a word about it. Milliseconds. */
const SILENT_STOP_MS = 200
const FINISHING =
  'Finishing in-flight work. Queued deliveries resume at the next start. Press Ctrl-C again to quit now.'

/** The only settings that a running instance reads again. */
const ROUTE_SETTINGS = ['forward', 'exec', 'ignore'] as const

/** Runs `relay serve`. */
export async function runServe(given: Shell, flags: ServeFlags): Promise<void> {
  let { out } = given
  // First, since reading the settings can print a warning.
  given.continueWithoutOutput(({ message }) =>
    out.log.warn(
      `standard output cannot be written (${message}); relay continues without it. Stop it with Ctrl-C or SIGTERM`,
    ),
  )
  using watch = watchSettings(given)
  const parts = await readParts(given, flags)
  const joined = join(parts)
  const { values } = joined
  // Only a file may have said so.
  out = out.withLogFormat(values.logFormat)
  const shell = shellWith(given, { out })
  let sources: readonly SetSource[] = []
  const readOwn = async (data?: Database): Promise<readonly SetSource[]> =>
    (sources = await servedSources(shell, joined, { data, allowUnsigned: flags.allowUnsigned === true }))
  // A mistake is found before a profile is made for it.
  if (!mayHaveData(storeOf(values), profileFolder(values))) await readOwn()
  const hooks = await readHookPlan(flags, parts)
  const hooked = hooks?.repos.map(formatRepo) ?? []
  const about = { ...joined, profile: values.profile, instance: { sandbox: flags.sandbox === true } }
  const command = (line: string): string => commandFor(about, line)
  const live = new LiveOutput(shell, new Routing(routeSettings(joined)), command)
  const published = publication(shell, joined)
  const reportConnection = (error: Error): void =>
    out.log.error(`a connection failed and was closed: ${error.message}`, error)
  using _ = { [Symbol.dispose]: shell.onConnectionError(reportConnection) }
  await using serving = await start(
    serviceSettings(parts, {
      sandbox: flags.sandbox === true,
      inspect: flags.inspect !== false,
      readSources: readOwn,
    }),
    {
      log: out.timedLog,
      place: commandPlace(about),
      signal: shell.signal,
      seams: shell.seams,
      env: shell.env,
      ...published,
      ...(hooks && { hooks }),
      onListening: (place) => shell.json && out.object({ type: 'listening', ...place }),
      onDelivery: live.onDelivery,
      onAttempt: live.onAttempt,
      onTarget: live.onTarget,
      onTunnel: live.onTunnel,
      onHook: live.onHook,
      onAccount: live.onAccount,
    },
  ).catch(async (error: unknown) => {
    throw await explainPort(shell, values, error)
  })
  const service: Service = { serving, loaded: joined, sources, command, listeners: [live] }
  watch.start(() => void reload(shell, flags, service))
  await announce(shell, service, { live, hooked })
  await untilQuit(shell, service, live.nameOf)
  await stop(serving, live.nameOf, out)
}

/** Prints what runs, with warnings of what the user should know. */
async function announce(
  { out, signal }: Shell,
  service: Service,
  { live, hooked }: { readonly live: LiveOutput; readonly hooked: readonly string[] },
): Promise<void> {
  const { serving, loaded, sources, command } = service
  const { values } = loaded
  const { host, tunnel } = values
  const signedIn = await signedInUser(serving, values)
  const tunnelUrls = await live.payloadUrls(serving.relay.sources.keys(), { tunnel, signal })
  const known = { tunnelUrls, nameOf: live.nameOf, hooked, signedIn, command }
  if (out.jsonLog) out.event('info', 'relay is running', bannerObject(serving, known))
  else for (const line of banner(serving, known)) out.say(line, BANNER_INDENT)
  const { store, folder, hostRefusal } = serving.settings
  const shared = hooked.length > 0 ? sharedSecretText(loaded.origins) : undefined
  if (shared !== undefined) out.log.warn(shared)
  if (hostRefusal) out.log.warn(`sign-in and actions are off: ${hostRefusal.message}`)
  if ((store === 'file' || store === 'keychain') && freeBytes(folder) < RESERVE)
    out.log.warn(`the disk of ${tilde(folder)} is almost full: deliveries are refused until 16 MiB are free`)
  if (!isLoopback(hostInUrl(host)))
    out.log.warn(
      `--host ${host}: anyone who can reach it can revoke tokens, since DELETE /auth/token needs no password`,
    )
  for (const { name } of sources.filter(({ scheme }) => isUnsigned(scheme)))
    out.log.warn(`${pathOf(name)} takes deliveries that nothing proves, from any program that reaches relay`)
  warnOfRoutes(out, service, loaded)
}

/** Says what is still waiting, and that in-flight work takes a while. */
async function stop(serving: Started, nameOf: (id: string) => string, out: Output): Promise<void> {
  const waiting = waitingText(serving.targets(), nameOf)
  if (waiting !== undefined) out.say(`Stopping. Still waiting: ${waiting}; sent at the next start.`)
  const slow = setTimeout(() => out.say(FINISHING), SILENT_STOP_MS)
  try {
    await serving[Symbol.asyncDispose]()
  } finally {
    clearTimeout(slow)
  }
}

/**
 * The settings of this process, and what the profile remembers unless its data is not used: with a store in memory.
 * @throws RelayError `settings` when the profile belongs to a sandbox and `--sandbox` is missing, or the reverse: its tokens and
 * deliveries are of another code host.
 */
async function readParts(shell: Shell, flags: ServeFlags): Promise<Parts> {
  const settings = await openSettings(shell, flags)
  const own = await settings.read()
  const { values, origins } = own
  const flag = [origins.provider, origins.providerUrl].find((origin) => origin?.kind === 'flag')
  if (flags.sandbox && flag)
    throw new RelayError(
      'usage',
      `${flag.text} cannot be used with --sandbox, which is a code host of its own`,
    )
  const saved = values.store === 'memory' ? undefined : readSavedProfile(profileFolder(values))
  const { profile } = values
  if (saved?.sandbox && !flags.sandbox && values.provider !== 'sandbox')
    throw new RelayError(
      'settings',
      `Profile ${profile} belongs to a sandbox. Start it with ${startCommand({ ...own, profile, saved })}, or choose another profile with --profile`,
    )
  const isOther = saved && !saved.sandbox && saved.provider !== 'sandbox'
  if (isOther && flags.sandbox && profile !== SANDBOX_PROFILE)
    throw new RelayError(
      'settings',
      `Profile ${profile} belongs to ${saved.providerUrl ?? 'a code host'}. Choose another for the sandbox with --profile, or remove its data with ${commandFor({ ...own, profile }, 'reset')}`,
    )
  const { hostRefusal } = join({ own, saved })
  // A sandbox makes its own client.
  if (hostRefusal && origins.clientSecret && !flags.sandbox) throw hostRefusal
  return { own, saved }
}

/**
 * The hooks that `serve` has, undefined for none.
 * @throws RelayError `usage` for a name that is no repository's; with `--sandbox`, whose own webhook sends everything already;
 * for `--catch-up` on Gitea, which has no log for programs
 */
async function readHookPlan(
  { sandbox, hook = [], catchUp = false }: ServeFlags,
  parts: Parts,
): Promise<HookPlan | undefined> {
  const repos = hook.map(parseRepo)
  if (repos.length === 0 && !catchUp) return undefined
  if (sandbox)
    throw new RelayError(
      'usage',
      `${catchUp ? '--catch-up' : '--hook'} cannot be used with --sandbox: the sandbox's own webhook sends every delivery already, and its log ends with it. Use the sandbox of another relay, with --provider sandbox and --provider-url`,
    )
  const first = join(parts)
  const { values } = first
  // What relay setup stored may say which code host it is. A shared store has no data of the profile before its first start; data that this
  // start migrates was served before, so that the profile remembers its code host.
  const found = await readJoined(parts, values).catch((error: unknown) => {
    if (error instanceof NotMigrated || (error instanceof RelayError && error.kind === 'no_match'))
      return undefined
    throw error
  })
  const joined = found ?? first
  if (joined.hostRefusal) throw joined.hostRefusal
  const { provider, profile, clientId } = joined.values
  const { noLog } = HOST_KINDS[provider].words
  if (catchUp && noLog)
    throw new RelayError(
      'usage',
      `--catch-up cannot be used with ${provider}, which shows programs no log of what it sent. Start without it. ${noLog.fix}`,
    )
  const about = { ...joined, profile }
  const onNoToken = withCommand(signInCommand(about, clientId !== undefined))
  const user = { user: userOf(values), isUserNamed: isUserNamed(joined) }
  return {
    repos,
    ...user,
    login: loginCommand(about),
    command: (line) => commandFor(about, line),
    onNoToken,
    catchUp,
  }
}

/** The settings with what the profile's data completes; undefined where it has none. @throws RelayError `storage` */
async function readJoined(parts: Parts, values: Values): Promise<Joined | undefined> {
  await using data = await openData({ ...parts.own, values, folder: profileFolder(values) })
  return data && (await joinData(parts, data.secrets))
}

/** The user of this shell, if signed in at the code host. What cannot be read counts as not signed in. */
async function signedInUser(
  { relay: { tokens, host } }: Started,
  values: Values,
): Promise<string | undefined> {
  try {
    const user = userOf(values)
    return (await tokens.isSignedIn(user, host.origin)) ? user : undefined
  } catch {
    return undefined
  }
}

/** Resolves at a signal, or at the key for it. */
async function untilQuit(shell: Shell, service: Service, nameOf: (id: string) => string): Promise<void> {
  const { serving, command } = service
  const { out, signal } = shell
  const quit = new AbortController()
  using keys = out.jsonLog
    ? undefined
    : listenToKeys(shell, serving, { nameOf, command, quit: () => quit.abort() })
  if (keys) out.say(dim('Press ? for keys, Ctrl-C to stop.'))
  const stopped = Promise.race([signal, quit.signal].map(aborted))
  await Promise.race([serving.sandbox?.ping(), stopped])
  await stopped
}

/** What runs, and the settings of the start. */
interface Service {
  readonly serving: Started
  readonly loaded: Loaded
  readonly sources: readonly SetSource[]
  /** Completes a command line of relay for the profile. */
  readonly command: (line: string) => string
  readonly listeners: readonly { setRoutes(routes: Pick<Routing, 'routes'>): void }[]
}

/** Replaces the routes by those that the settings have now. If it cannot, it warns and changes nothing. Does not reject. */
async function reload(shell: Shell, flags: Flags, service: Service): Promise<void> {
  const { out } = shell
  const { serving, loaded, listeners } = service
  try {
    // No other setting: the file of a secret can be a pipe, which was read at the start.
    const settings = await openSettings(shell, flags)
    const now = await settings.read(loaded.values.profile, ROUTE_SETTINGS)
    const { origins } = now
    const routes = routeSettings(now)
    await serving.checkRoutes(routes)
    serving.replaceRoutes(routes)
    for (const listener of listeners) listener.setRoutes(serving.relay.routing)
    const count = routes.forward.length + routes.exec.length
    out.say(`Reloaded the settings: ${count} routes; any other change needs a restart`)
    warnOfRoutes(out, service, { ...now, origins: { ...loaded.origins, ...origins } })
  } catch (error) {
    out.log.warn(`the routes are unchanged: ${toRelayError(error).message}`)
  }
}

function warnOfRoutes({ log }: Output, { serving, sources, command }: Service, loaded: Loaded): void {
  const { origins, leftOutExec } = loaded
  const about = { provider: serving.settings.provider, origins, leftOutExec, sources, command }
  for (const text of routeWarnings(routeSettings(loaded), about)) log.warn(text)
}
