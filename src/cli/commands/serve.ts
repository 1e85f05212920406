import { once } from 'node:events'
import type { Command } from 'commander'
import { DEFAULT_SANDBOX_PORT } from '../../base/settings.js'
import { isLoopback } from '../../base/loopback.js'
import type { Context } from '../context.js'
import { deliveryLine, deliveryObject } from '../delivery-line.js'
import { addOptions, environmentHelp, exitCodesHelp, prepare, type RawOptions } from '../globals.js'
import type { OptionName } from '../options.js'
import type { Output } from '../output.js'
import { completeSettings } from '../settings.js'
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
export function addServe(program: Command, context: Context, run = runServe): void {
  const command = program
    .command('serve')
    .summary('run the service')
    .description(
      `Runs the service: receives signed webhook deliveries and writes each to the journal before answering, signs users
in at the code host, and comments, merges and reacts for them. Runs until Ctrl-C.

Examples:
  relay serve --sandbox           everything, with a code host of its own
  relay serve                     GitHub
  relay serve --provider gitea --provider-url https://git.example.com
  relay serve --json | jq .event  one JSON object for each delivery`,
    )
    .option('--sandbox', 'start an emulated code host beside the service and use it')
  addOptions(command, FLAGS)
    .addHelpText(
      'after',
      `${environmentHelp([...FLAGS, ...ENVIRONMENT])}
${exitCodesHelp([0, 1, 2], { 0: 'ok, also after Ctrl-C' })}`,
    )
    .action((_: unknown, serve: Command) => run(context, serve.optsWithGlobals()))
}

async function runServe(context: Context, flags: ServeFlags): Promise<void> {
  const { output, options: read } = prepare(context, flags)
  const options = flags.sandbox ? { ...read, provider: 'sandbox' as const, providerUrl: SANDBOX } : read
  const settings = completeSettings(options)
  const { serve } = await import('../../serve.js')
  await using serving = await serve(settings, {
    log: output.log,
    signal: context.signal,
    sandboxPort: flags.sandbox ? (options.sandboxPort ?? DEFAULT_SANDBOX_PORT) : undefined,
    onDelivery: (delivery, receipt) => {
      if (flags.json) output.object(deliveryObject(delivery, receipt))
      output.say(deliveryLine(delivery, receipt, output.paint))
    },
  })
  if (flags.json)
    output.object({ type: 'listening', url: serving.url, sandbox: serving.sandbox?.url ?? null })
  output.say(startUpBlock(serving, options.webhookSecret ? 'settings' : 'profile', output.paint))
  warnOfOpenHost(settings.host, output)
  const stopped = aborted(context.signal)
  await Promise.race([serving.sandbox?.ping(), stopped])
  await stopped
  output.say('finishing what is under way; Ctrl-C again quits at once')
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
