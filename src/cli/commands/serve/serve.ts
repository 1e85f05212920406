import { isUnsigned } from '../../../senders/source-text.js'
import { pathOf } from '../../../base/source-names.js'
import { isDeepStrictEqual } from 'node:util'
import { SANDBOX_PROFILE } from '../../../base/command-line.js'
import { aborted } from '../../../base/wait.js'
import { errorCode, RelayError } from '../../../base/errors.js'
import { hostInUrl, isLoopback } from '../../../base/address.js'
import { hostKind } from '../../../codehost/hosts.js'
import { Routing } from '../../../dispatch/routing.js'
import { readSavedProfile } from '../../../instance/profile.js'
import type { HookPlan } from '../../../serve/hooks.js'
import type { Instance } from '../../../serve/instance.js'
import { start, type Started } from '../../../serve/start.js'
import { type Database, mayHaveData } from '../../../store/open.js'
import { NotMigrated } from '../../../store/schema.js'
import { freeBytes, RESERVE } from '../../../store/sqlite.js'
import { type Flags, type Shell, shellWith } from '../../command.js'
import type { CommandMessages } from '../../output/output.js'
import { dim, tilde } from '../../output/text.js'
import {
  type Advised,
  commandFor,
  commandPlace,
  loginCommandLine,
  restartText,
  signInCommand,
  startCommand,
  withCommand,
} from '../../advice.js'
import { runService } from '../../service.js'
import { publication, serviceSettings } from './settings.js'
import { explainPort } from '../../port-owner.js'
import { noDataYet, openStored } from '../../profile.js'
import { isUserNamed, profileFolder, routeSettings, storeOf, userOf } from '../../settings/derived.js'
import { joinStored } from '../../stored-setup.js'
import { sharedSecretText } from '../../webhook-secret.js'
import { joinSettings, type Joined, type Parts } from '../../settings/join.js'
import { type LoadedSettings, openSettings } from '../../settings/read.js'
import { hubOf } from '../../../serve/tunnel.js'
import type { Values } from '../../settings/parse.js'
import { SETTING_NAMES, type SettingName } from '../../settings/table.js'
import { servedSources, type SetSource } from '../../sources.js'
import { ANY_OWNER, formatRepo, parseRepo } from '../../../codehost/repo.js'
import { EventItems } from './event-items.js'
import { messagesTo, type ServeItem } from './items.js'
import { type Running, runningOf } from './running.js'
import { listenToKeys, routeWarnings, waitingText, watchSettings } from './terminal.js'

export interface ServeFlags extends Flags {
  readonly hook?: readonly string[]
  readonly catchUp?: boolean
  readonly inspect?: boolean
  readonly allowUnsigned?: boolean
  readonly keepRunning?: boolean
}

/** Time that a stop may take without a message. Milliseconds. */
const SILENT_STOP_MS = 200
const FINISHING =
  'Finishing in-flight work. Queued deliveries resume at the next start. Press Ctrl-C again to quit now.'

/**
 * Runs `relay serve`, and yields what happens. It never waits for its reader: intake and forwarding continue while items
 * wait. It stops when the reader leaves.
 */
export async function* runServe(given: Shell, flags: ServeFlags): AsyncGenerator<ServeItem, void> {
  yield* runService<ServeItem>(
    given.signal,
    ({ signal, ...run }) => serve(shellWith(given, { signal }), flags, run),
    (count) => ({ type: 'dropped', count }),
  )
}

/** Serves until the signal aborts or the user quits. */
async function serve(
  given: Shell,
  flags: ServeFlags,
  { push, end }: { readonly push: (item: ServeItem) => void; readonly end: () => void },
): Promise<void> {
  const out = messagesTo(push, given.out)
  const shell = shellWith(given, { out })
  // Set first, since reading the settings can print a warning.
  onLostOutput(shell, { keepRunning: flags.keepRunning === true, end })
  using watch = watchSettings(shell)
  const parts = await readParts(shell, flags)
  const joined = joinSettings(parts)
  const { values } = joined
  const about = { ...joined, instance: { sandbox: flags.sandbox === true } }
  push({ type: 'starting', logFormat: values.logFormat, place: commandPlace(about) })
  let sources: readonly SetSource[] = []
  const readSources = async (from: Joined, data?: Database): Promise<readonly SetSource[]> =>
    (sources = await servedSources(shell, from, { data, allowUnsigned: flags.allowUnsigned === true }))
  // Checked now, so that a mistake is found before a profile is made for it.
  if (!mayHaveData(storeOf(values), profileFolder(values))) await readSources(joined)
  const hooks = await readHookPlan(shell, flags, parts)
  const hooked = hooks?.repos.map(formatRepo) ?? []
  const command = (line: string): string => commandFor(about, line)
  const events = new EventItems(push, new Routing(routeSettings(joined)))
  const reportConnection = (error: Error): void =>
    out.log.error(`a connection failed and was closed: ${error.message}`, error)
  using _ = { [Symbol.dispose]: shell.onConnectionError(reportConnection) }
  const warningsOf = (loaded: LoadedSettings, provider: string): readonly string[] => {
    const { origins, leftOutExec } = loaded
    return routeWarnings(routeSettings(loaded), { provider, origins, leftOutExec, sources, command })
  }
  const reader = serviceSettings(parts, {
    sandbox: flags.sandbox === true,
    inspect: flags.inspect !== false,
    readSources,
    async rereadParts() {
      const own = await readAgain(shell, flags, parts.own)
      const restart = restartTexts(parts.own, own, about)
      return { parts: { ...parts, own }, restart, warnings: (provider) => warningsOf(own, provider) }
    },
  })
  await using started = await start(reader, {
    log: out.timedLog,
    place: commandPlace(about),
    seams: shell.seams,
    env: shell.env,
    ...publication(shell, joined),
    hooks,
    onEvent: events.onEvent,
  }).catch(async (error: unknown) => {
    throw await explainPort(shell, values, error)
  })
  const { instance } = started
  watch.start(() => void instance.reload().catch(() => {}))
  push({ type: 'running', running: await describe(shell, instance, { events, values, hooked }) })
  const routes = warningsOf(joined, instance.settings.provider)
  await warn(instance, { loaded: joined, sources, hooked, routes }, out)
  await untilQuit(shell, instance, { nameOf: events.nameOf, command, format: values.logFormat })
  await stop(started, events.nameOf, out)
}

/** Ends relay when the reader of its output has gone, as other programs end, unless it is to keep running. */
function onLostOutput(
  shell: Pick<Shell, 'continueWithoutOutput' | 'out'>,
  { keepRunning, end }: { readonly keepRunning: boolean; readonly end: () => void },
): void {
  const { out } = shell
  shell.continueWithoutOutput((error) => {
    if (errorCode(error) === 'EPIPE' && !keepRunning) {
      out.say('The reader of the output has gone, so relay stops. --keep-running keeps it running')
      end()
    } else
      out.log.warn(
        `standard output cannot be written (${error.message}); relay continues without it. Stop it with Ctrl-C or SIGTERM`,
      )
  })
}

/** Describes what runs, with the channels that its tunnels have by then. */
async function describe(
  { signal }: Shell,
  instance: Instance,
  {
    events,
    values,
    hooked,
  }: { readonly events: EventItems; readonly values: Values; readonly hooked: readonly string[] },
): Promise<Running> {
  events.targets = () => instance.targets()
  const names = [...instance.core.sources.values()].map(({ name }) => name)
  const signedIn = await signedInUser(instance, values)
  const tunnelUrls = await events.payloadUrls(names, { tunnel: values.tunnel, signal })
  return runningOf(instance, { tunnelUrls, nameOf: events.nameOf, hooked, signedIn })
}

interface Checked {
  readonly loaded: Joined
  readonly sources: readonly SetSource[]
  readonly hooked: readonly string[]
  /** Warnings about routes. */
  readonly routes: readonly string[]
}

/** Warns of what the user should know about a relay that has started. */
async function warn({ settings, core }: Instance, checked: Checked, out: CommandMessages): Promise<void> {
  const { loaded, sources, hooked, routes } = checked
  const hub = await hubOf(settings, core.database.store)
  const { host } = loaded.values
  const { store, folder, hostRefusal } = settings
  const shared = hooked.length > 0 ? sharedSecretText(loaded.origins) : undefined
  const isFull = (store === 'file' || store === 'keychain') && freeBytes(folder) < RESERVE
  const texts = [
    shared,
    hostRefusal && `sign-in and actions are off: ${hostRefusal.message}`,
    isFull && `the disk of ${tilde(folder)} is almost full: deliveries are refused until 16 MiB are free`,
    !isLoopback(hostInUrl(host)) &&
      `--host ${host}: anyone who can reach it can revoke tokens, since DELETE /auth/token needs no password`,
    ...sources
      .filter(({ scheme }) => isUnsigned(scheme))
      .map(({ name }) =>
        hub === undefined
          ? `${pathOf(name)} takes deliveries that nothing proves, from any program that reaches relay`
          : `${name} takes deliveries that nothing proves, from anybody who knows its address at the hub ${hub}`,
      ),
    ...routes,
  ]
  for (const text of texts) if (typeof text === 'string') out.log.warn(text)
}

/** Reports waiting deliveries, and in-flight work that takes a while. */
async function stop(started: Started, nameOf: (id: string) => string, out: CommandMessages): Promise<void> {
  const waiting = waitingText(started.instance.targets(), nameOf)
  if (waiting !== undefined) out.say(`Stopping. Still waiting: ${waiting}; sent at the next start.`)
  const slow = setTimeout(() => out.say(FINISHING), SILENT_STOP_MS)
  try {
    await started[Symbol.asyncDispose]()
  } finally {
    clearTimeout(slow)
  }
}

/**
 * Reads the settings of this process, and the profile's saved use unless its data is not used, with a store in memory.
 * @throws RelayError `settings` if the profile belongs to a sandbox and `--sandbox` is missing, or the reverse: its
 * tokens and deliveries are of another code host
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
      `Profile ${profile} belongs to a sandbox. Start it with ${startCommand({ ...own, saved })}, or choose another profile with --profile`,
    )
  const isOther = saved && !saved.sandbox && saved.provider !== 'sandbox'
  if (isOther && flags.sandbox && profile !== SANDBOX_PROFILE)
    throw new RelayError(
      'settings',
      `Profile ${profile} belongs to ${saved.providerUrl ?? 'a code host'}. Choose another for the sandbox with --profile, or remove its data with ${commandFor(own, 'reset')}`,
    )
  const { hostRefusal } = joinSettings({ own, saved })
  // A sandbox generates its own client.
  if (hostRefusal && origins.clientSecret && !flags.sandbox) throw hostRefusal
  return { own, saved }
}

/**
 * Reads the hooks that `serve` keeps. Undefined for none.
 * @throws RelayError `usage` for an invalid repository name; with `--sandbox`, whose own webhook sends everything
 * already; for `--catch-up` on Gitea, which has no log for programs
 */
async function readHookPlan(
  shell: Shell,
  { sandbox, hook = [], catchUp = false }: ServeFlags,
  parts: Parts,
): Promise<HookPlan | undefined> {
  for (const text of hook) parseRepo(text, ANY_OWNER)
  if (hook.length === 0 && !catchUp) return undefined
  if (sandbox)
    throw new RelayError(
      'usage',
      `${catchUp ? '--catch-up' : '--hook'} cannot be used with --sandbox: the sandbox's own webhook sends every delivery already, and its log ends with it. Use the sandbox of another relay, with --provider sandbox and --provider-url`,
    )
  const first = joinSettings(parts)
  const { values } = first
  // Values that relay setup stored may say which code host it is. A shared store has no data of the profile before its first start; data that this
  // start migrates was served before, so that the profile remembers its code host.
  const found = await readJoined(shell, parts, values).catch((error: unknown) =>
    error instanceof NotMigrated ? undefined : noDataYet(error),
  )
  const joined = found ?? first
  if (joined.hostRefusal) throw joined.hostRefusal
  const { provider, clientId } = joined.values
  const kind = await hostKind(provider)
  const repos = hook.map((text) => parseRepo(text, kind))
  const { noLog } = kind.words
  if (catchUp && noLog)
    throw new RelayError(
      'usage',
      `--catch-up cannot be used with ${provider}, which shows programs no log of what it sent. Start without it. ${noLog.fix}`,
    )
  const onNoToken = withCommand(signInCommand(joined, clientId !== undefined))
  const user = { user: userOf(values), isUserNamed: isUserNamed(joined) }
  return {
    repos,
    ...user,
    login: loginCommandLine(joined),
    command: (line) => commandFor(joined, line),
    onNoToken,
    catchUp,
  }
}

/** The settings with what the profile's data completes; undefined where it has none. @throws RelayError `storage` */
async function readJoined(shell: Shell, parts: Parts, values: Values): Promise<Joined | undefined> {
  const folder = profileFolder(values)
  if (!mayHaveData(storeOf(values), folder)) return undefined
  await using data = await openStored(shell, { ...parts.own, values, folder }, { create: false })
  return await joinStored(parts, data.secrets)
}

/** Returns the user of this shell, if signed in at the code host. Unreadable data counts as not signed in. */
async function signedInUser(
  { core: { tokens, host } }: Instance,
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
async function untilQuit(
  shell: Shell,
  instance: Instance,
  {
    format,
    ...texts
  }: Omit<Parameters<typeof listenToKeys>[2], 'quit'> & { readonly format: Values['logFormat'] },
): Promise<void> {
  const { out, signal } = shell
  const quit = new AbortController()
  // A program that reads messages as JSON presses no keys.
  const wantsKeys = format !== 'json'
  using keys = wantsKeys ? listenToKeys(shell, instance, { ...texts, quit: () => quit.abort() }) : undefined
  if (keys) out.say(dim('Press ? for keys, Ctrl-C to stop.'))
  const stopped = Promise.race([signal, quit.signal].map(aborted))
  await Promise.race([instance.sandbox?.ping(), stopped])
  await stopped
}

// Settings that change while relay runs

/** Settings that a running instance uses as soon as it has read them again. */
const LIVE: ReadonlySet<SettingName> = new Set([
  'forward',
  'exec',
  'ignore',
  'routes',
  'timeout',
  'reply',
  'sources',
  'webhookSecret',
  'webhookSecretPrevious',
])
/** Settings that a running instance does not use. */
const OF_COMMANDS: ReadonlySet<SettingName> = new Set(['user'])

/**
 * Reads the current settings of this process for the profile that it serves. A pipe has the content that was read at
 * the start.
 */
async function readAgain(shell: Shell, flags: Flags, before: LoadedSettings): Promise<LoadedSettings> {
  const settings = await openSettings(shell, flags)
  return settings.read(before.values.profile)
}

/** Describes changes that need a restart, as a sentence with the command. Empty without such changes. */
function restartTexts(before: LoadedSettings, now: LoadedSettings, about: Advised): readonly string[] {
  const changed = SETTING_NAMES.filter(
    (name) =>
      !LIVE.has(name) && !OF_COMMANDS.has(name) && !isDeepStrictEqual(before.values[name], now.values[name]),
  )
  if (changed.length === 0) return []
  const names = changed.map((name) => (now.origins[name] ?? before.origins[name])?.text ?? name).join(', ')
  const use = changed.length === 1 ? 'it' : 'them'
  const restart = restartText({
    ...about,
    instance: { sandbox: about.instance?.sandbox === true, pid: process.pid },
  })
  return [`${names} changed, and a running relay cannot use ${use}. ${restart}`]
}
