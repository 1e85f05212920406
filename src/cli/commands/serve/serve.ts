import { aborted } from '../../../base/abort.js'
import { toRelayError } from '../../../base/errors.js'
import { isLoopback } from '../../../base/loopback.js'
import type { RouteSettings } from '../../../base/settings.js'
import { isSharedAddress } from '../../../base/shared-store.js'
import { serve, type Serving } from '../../../serve/serve.js'
import type { Context } from '../../context.js'
import { dim } from '../../output/line.js'
import type { Output } from '../../output/output.js'
import { completeSettings, forwardSettings, settingsWithoutCodeHost } from '../../settings/complete.js'
import { isOfFolder, type Origins } from '../../settings/origin.js'
import type { OptionValues } from '../../settings/options.js'
import { type CommonFlags, prepareService } from '../../settings/prepare.js'
import { publish } from '../../session/publish.js'
import { formatRepo } from '../../session/repo.js'
import { readUser } from '../../session/user.js'
import { createRouting } from '../../../dispatch/routes.js'
import { PlainFeed } from '../../output/plain-feed.js'
import { banner, BANNER_INDENT, bannerObject, type BannerParts } from './banner.js'
import { routeWarnings } from './check-routes.js'
import { inspectorKey } from './inspector-key.js'
import { listenToKeys } from './keys.js'
import { createLiveOutput, type LiveOutput } from './live-output.js'
import { type HookFlags, readHookPlan } from './hook-plan.js'
import { watchSettings } from './reload.js'
import { servedProfile } from './served-profile.js'
import { waitingText } from './waiting.js'

/** How long a stop may take without a word about it. Milliseconds. */
const SILENT_STOP_MS = 200

type ServeFlags = CommonFlags & HookFlags & { readonly inspect?: boolean }

export async function runServe(context: Context, flags: ServeFlags): Promise<void> {
  // First, since reading the settings can print a warning. Nothing is written to stdout before `output` exists.
  context.continueWithoutOutput((error) => warnOfLostOutput(error, output))
  using watch = watchSettings(context)
  const prepared = prepareService(context, flags)
  const { output, origins } = prepared
  const options = await servedProfile(prepared, flags.sandbox === true)
  const hooks = readHookPlan(flags, options)
  const hooked = hooks?.repos.map(formatRepo) ?? []
  const inspect = flags.inspect !== false
  const settings = flags.sandbox
    ? { ...settingsWithoutCodeHost(options), inspect, sandboxPort: options.sandboxPort }
    : { ...completeSettings(options), inspect }
  using _connections = onConnectionError(context, output)
  using feed = openFeed(context, flags, output)
  const live = createLiveOutput(output, {
    json: flags.json === true,
    routes: createRouting(settings.routes),
    feed,
  })
  await using serving = await serve(settings, {
    log: output.timedLog,
    signal: context.signal,
    seams: context.seams,
    // The password of the shared store is one of relay's secrets.
    env: isSharedAddress(options.store) ? { ...context.env, PGPASSWORD: undefined } : context.env,
    // With the store that the profile continues with.
    onTaken: publish({ ...prepared, options }, hooked),
    ...(hooks && { hooks }),
    onListening: (place) => flags.json && output.object({ type: 'listening', ...place }),
    ...live,
  })
  watch.start(() => void reload(context, flags, { serving, live, output }))
  await live.payloadUrl(settings.tunnel, aborted(context.signal))
  printBanner(serving, { ...live, hooked, signedIn: await signedInUser(serving, options) }, output)
  warnOfOpenHost(settings.host, output)
  warnOfRoutes(settings.routes, serving, origins, context, output)
  await untilQuit(context, serving, { live, output, home: options.home })
  sayWhatWaits(serving, live, output)
  const slow = setTimeout(() => output.say(FINISHING), SILENT_STOP_MS)
  try {
    await serving[Symbol.asyncDispose]()
  } finally {
    clearTimeout(slow)
  }
}

const FINISHING =
  'Finishing in-flight work. Queued deliveries resume at the next start. Press Ctrl-C again to quit now.'

/** Lines can change on a terminal that is relay's own, and where no objects are printed between them. */
function openFeed(context: Context, { json }: CommonFlags, output: Output) {
  const isAlone = context.isInForeground() && !(json === true && output.isTerminal)
  return (isAlone ? output.openFeed() : undefined) ?? new PlainFeed(output)
}

/** The user of this shell, if signed in at the code host. What cannot be read counts as not signed in. */
async function signedInUser(
  { relay: { tokens, host } }: Serving,
  options: OptionValues,
): Promise<string | undefined> {
  try {
    const user = readUser(options)
    const signIn = (await tokens.get(user)) ?? (await tokens.refreshable(user))
    return signIn?.origin === host.origin ? user : undefined
  } catch {
    return undefined
  }
}

function printBanner(serving: Serving, parts: BannerParts, output: Output): void {
  if (output.jsonLog) output.jsonLog.event('info', 'relay is running', bannerObject(serving, parts))
  else for (const line of banner(serving, parts)) output.say(line, BANNER_INDENT)
}

/** Resolves at a signal, or at the key for it. */
async function untilQuit(
  context: Context,
  serving: Serving,
  {
    live: { nameOf },
    output,
    home,
  }: { readonly live: LiveOutput; readonly output: Output; readonly home: string },
): Promise<void> {
  const quit = new AbortController()
  const inspect = inspectorKey(context, serving, output, home)
  using keys = output.jsonLog
    ? undefined
    : listenToKeys(context, serving, output, { nameOf, quit: () => quit.abort(), inspect })
  if (keys) output.say(dim('Press ? for keys, Ctrl-C to stop.'))
  const stopped = Promise.race([context.signal, quit.signal].map(aborted))
  await Promise.race([serving.sandbox?.ping(), stopped])
  await stopped
}

function sayWhatWaits(serving: Serving, { nameOf }: LiveOutput, output: Output): void {
  const waiting = waitingText(serving.targets(), nameOf)
  if (waiting !== undefined) output.say(`Stopping. Still waiting: ${waiting}; sent at the next start.`)
}

/** Replaces the routes by those that the settings have now. If it cannot, it warns and changes nothing. Does not reject. */
async function reload(
  context: Context,
  flags: CommonFlags,
  {
    serving,
    live,
    output,
  }: { readonly serving: Serving; readonly live: LiveOutput; readonly output: Output },
): Promise<void> {
  try {
    const { options, origins } = prepareService(context, flags)
    const routes = forwardSettings(options)
    await serving.checkRoutes(routes)
    serving.replaceRoutes(routes)
    live.setRoutes(serving.relay.routing)
    output.say(`Reloaded the settings: ${routes.forward.length + routes.exec.length} routes`)
    warnOfRoutes(routes, serving, origins, context, output)
  } catch (error) {
    output.log.warn(`the routes are unchanged: ${toRelayError(error).message}`)
  }
}

function warnOfRoutes(
  routes: RouteSettings,
  { settings }: Serving,
  origins: Origins,
  context: Context,
  output: Output,
): void {
  for (const text of routeWarnings(routes, settings.provider, origins, context)) output.log.warn(text)
  listProjectCommands(routes, origins, output)
}

/**
 * Warns of commands from the folder's files, whose author can be anyone, and of a secret from there, which lets its readers sign
 * deliveries that run commands.
 */
function listProjectCommands({ exec }: RouteSettings, origins: Origins, { log }: Output): void {
  if (origins.exec && isOfFolder(origins.exec))
    for (const command of exec) log.warn(`${origins.exec.text} runs a command for deliveries: ${command}`)
  const secret = [origins.webhookSecret, origins.webhookSecretPrevious].find((one) => one && isOfFolder(one))
  if (exec.length > 0 && secret)
    log.warn(`anyone who can read ${secret.text} can sign deliveries that run commands here`)
}

/** Written to stderr, unless that is lost too. */
function warnOfLostOutput({ message }: Error, { log }: Output): void {
  log.warn(
    `standard output cannot be written (${message}); relay continues without it. Stop it with Ctrl-C or SIGTERM`,
  )
}

/** Keeps the service running when a connection fails that no part of it listens to. */
function onConnectionError(context: Context, { log }: Output): Disposable {
  const undo = context.onConnectionError((error) =>
    log.error(`a connection failed and was closed: ${error.message}`, error),
  )
  return { [Symbol.dispose]: undo }
}

function warnOfOpenHost(host: string, { log }: Output): void {
  if (isLoopback(host.includes(':') ? `[${host}]` : host)) return
  log.warn(
    `--host ${host}: anyone who can reach it can revoke tokens, since DELETE /auth/token needs no password`,
  )
}
