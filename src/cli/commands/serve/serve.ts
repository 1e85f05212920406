import { aborted } from '../../../base/abort.js'
import { toRelayError } from '../../../base/errors.js'
import { isLoopback } from '../../../base/loopback.js'
import type { RouteSettings } from '../../../base/settings.js'
import { serve, type Serving } from '../../../serve/serve.js'
import type { Context } from '../../context.js'
import type { Output } from '../../output/output.js'
import { completeSettings, forwardSettings, settingsWithoutCodeHost } from '../../settings/complete.js'
import { isOfFolder, type Origins } from '../../settings/origin.js'
import { type CommonFlags, prepare } from '../../settings/prepare.js'
import { publish } from '../../session/publish.js'
import { banner } from './banner.js'
import { createLiveOutput } from './live-output.js'
import { onSettingsChange } from './reload.js'
import { servedProfile } from './served-profile.js'

export async function runServe(context: Context, flags: CommonFlags): Promise<void> {
  // First, since reading the settings can print a warning. Nothing is written to stdout before `output` exists.
  context.continueWithoutOutput((error) => warnOfLostOutput(error, output))
  const prepared = prepare(context, flags)
  const { output, origins } = prepared
  const options = servedProfile(prepared, flags.sandbox === true)
  const settings = flags.sandbox
    ? { ...settingsWithoutCodeHost(options), sandboxPort: options.sandboxPort }
    : completeSettings(options)
  using _connections = onConnectionError(context, output)
  await using serving = await serve(settings, {
    log: output.timedLog,
    signal: context.signal,
    env: context.env,
    onTaken: publish(prepared),
    onListening: (place) => flags.json && output.object({ type: 'listening', ...place }),
    ...createLiveOutput(output, { json: flags.json === true, signal: context.signal }),
  })
  for (const line of banner(serving, origins.webhookSecret ? 'settings' : 'profile')) output.say(line)
  warnOfOpenHost(settings.host, output)
  listProjectCommands(settings.routes, origins, output)
  using _reload = onSettingsChange(context, () => reload(context, flags, serving, output))
  const stopped = Promise.race([aborted(context.signal), aborted(serving.lost)])
  await Promise.race([serving.sandbox?.ping(), stopped])
  await stopped
  serving.lost.throwIfAborted()
  output.say(
    'Finishing in-flight work. Queued deliveries resume at the next start. Press Ctrl-C again to quit now.',
  )
}

/** Replaces the routes by those that the settings have now. If these are invalid, it warns and changes nothing. */
function reload(context: Context, flags: CommonFlags, serving: Serving, output: Output): void {
  try {
    const { options, origins } = prepare(context, flags)
    const routes = forwardSettings(options)
    serving.replaceRoutes(routes)
    output.say(`Reloaded the settings: ${routes.forward.length + routes.exec.length} routes`)
    listProjectCommands(routes, origins, output)
  } catch (error) {
    output.log.warn(`the routes are unchanged: ${toRelayError(error).message}`)
  }
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
