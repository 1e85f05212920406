import { once } from 'node:events'
import type { Command } from 'commander'
import { toRelayError } from '../../base/errors.js'
import { DEFAULT_SANDBOX_PORT, type HandOnSettings } from '../../base/settings.js'
import { isLoopback } from '../../base/loopback.js'
import type { Serving } from '../../serve/serve.js'
import type { Context } from '../context.js'
import { addOptions, environmentHelp, exitCodesHelp, prepare, type RawOptions } from '../globals.js'
import type { OptionName } from '../options.js'
import type { Output } from '../output.js'
import { onSettingsChange } from '../reload.js'
import { createShow } from '../show.js'
import { completeSettings, handOnSettings } from '../settings.js'
import type { Origins } from '../settings/origin.js'
import { startUpBlock } from '../start-up.js'

type ServeFlags = RawOptions & { readonly sandbox?: boolean }

const FLAGS: readonly OptionName[] = [
  'provider',
  'providerUrl',
  'port',
  'host',
  'allowHost',
  'publicUrl',
  'baseUrl',
  'store',
  'maxBody',
  'sandboxPort',
  'tunnel',
  'forward',
  'exec',
  'ignore',
  'concurrency',
  'onDuplicate',
  'keep',
  'keepMax',
]
const ENVIRONMENT: readonly OptionName[] = [
  'clientId',
  'clientSecret',
  'webhookSecret',
  'webhookSecretPrevious',
  'tokenTtl',
  'home',
]

/** Declares `relay serve`. `run` is a parameter so that parsing can be tested alone. */
export function declareServe(command: Command, context: Context, run = runServe): void {
  command
    .description(
      `Runs the service: receives signed webhook deliveries, writes each to the journal before answering, and hands it on to
local programs; signs users in at the code host, and comments, merges and reacts for them. Runs until Ctrl-C.

Examples:
  relay serve --sandbox           everything, with a code host of its own
  relay serve                     GitHub
  relay serve --provider gitea --provider-url https://git.example.com
  relay serve --forward http://localhost:3000/hooks --exec 'push=./deploy.sh'
  relay serve --tunnel            reached from the internet, through a channel of smee.io
  relay serve --json | jq 'select(.type == "delivery")'`,
    )
    .option('--sandbox', 'start an emulated code host beside the service and use it')
  addOptions(command, FLAGS)
    .addHelpText(
      'after',
      () => `${environmentHelp([...FLAGS, ...ENVIRONMENT])}
${exitCodesHelp([0, 1, 2], { 0: 'ok, also after Ctrl-C' })}`,
    )
    .action((_: unknown, serve: Command) => run(context, serve.optsWithGlobals()))
}

async function runServe(context: Context, flags: ServeFlags): Promise<void> {
  const { output, options: read, origins } = prepare(context, flags)
  const options = flags.sandbox ? { ...read, provider: 'sandbox' as const, providerUrl: SANDBOX } : read
  const settings = completeSettings(options)
  const { serve } = await import('../../serve/serve.js')
  const show = createShow(output, { json: flags.json === true, signal: context.signal })
  await using serving = await serve(settings, {
    log: output.log,
    signal: context.signal,
    sandboxPort: flags.sandbox ? (options.sandboxPort ?? DEFAULT_SANDBOX_PORT) : undefined,
    env: context.env,
    onListening: (place) => flags.json && output.object({ type: 'listening', ...place }),
    ...show,
  })
  output.say(startUpBlock(serving, options.webhookSecret ? 'settings' : 'profile', output.paint))
  warnOfOpenHost(settings.host, output)
  listProjectCommands(settings.handOn, origins, output)
  using _reload = onSettingsChange(context, () => reload(context, flags, serving, output))
  const stopped = aborted(context.signal)
  await Promise.race([serving.sandbox?.ping(), stopped])
  await stopped
  output.say(
    'finishing what is under way; what is not handed on yet will be at the next start; Ctrl-C again quits at once',
  )
}

/** Takes the routes over as the settings name them now; what is wrong with them is said, and nothing changes. */
function reload(context: Context, flags: ServeFlags, serving: Serving, output: Output): void {
  try {
    const { options, origins } = prepare(context, flags)
    const handOn = handOnSettings(options)
    serving.replaceRoutes(handOn)
    output.say(`routes read again: ${handOn.forward.length + handOn.exec.length}`)
    listProjectCommands(handOn, origins, output)
  } catch (error) {
    output.log.warn(`the routes stay as they are: ${toRelayError(error).message}`)
  }
}

/** Whoever wrote the project wrote these commands, so a person should see what will run. */
function listProjectCommands({ exec }: HandOnSettings, origins: Origins, output: Output): void {
  if (origins.exec?.kind !== 'project') return
  for (const command of exec)
    output.log.warn(`${origins.exec.text} runs a command for deliveries: ${command}`)
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

function warnOfOpenHost(host: string, { log }: Output): void {
  if (isLoopback(host.includes(':') ? `[${host}]` : host)) return
  log.warn(
    `--host ${host}: whoever reaches it can revoke tokens, since DELETE /auth/token asks for no password`,
  )
}

/** Stands in for the sandbox's address until it listens. */
const SANDBOX = 'http://127.0.0.1'
