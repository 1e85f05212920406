import { RelayError } from '../../../base/errors.js'
import { callInstance } from '../../../client/call-instance.js'
import type { RunningInstance } from '../../../instance/running.js'
import { openInspector } from '../../browser/open-inspector.js'
import { forwardingHint, isRemote } from '../../browser/ssh.js'
import type { Context } from '../../context.js'
import type { Output } from '../../output/output.js'
import { attach, type Attached } from '../../session/attach.js'
import { startCommand } from '../../session/start-command.js'
import type { CommonFlags } from '../../settings/prepare.js'

type InspectFlags = CommonFlags & { readonly browser?: boolean }

/** Runs `relay inspect`. */
export async function runInspect(context: Context, flags: InspectFlags, word?: string): Promise<void> {
  const entry = readEntry(word)
  const attached = await attach(context, flags)
  const { output, options } = attached
  const { env, signal } = context
  const instance = runningInstance(attached)
  const { url } = instance
  const { code } = await callInstance(instance, 'inspect', {}, { signal })
  const isPending = async (): Promise<boolean> =>
    (await callInstance(instance, 'inspect pending', { code }, { signal })).pending
  const address = `${url}/inspect/${entry === undefined ? '' : `deliveries/${entry}`}`
  const print = (): void => printCode(output, { address, code, isRemote: isRemote(env) }, flags)
  if (flags.browser === false || isRemote(env)) return print()
  const toOpen = { url, code, entry, isPending }
  const opened = await openInspector(toOpen, { home: options.home, env, signal })
  if (opened === 'not started') return print()
  if (opened === 'not used')
    throw new RelayError(
      'timed_out',
      `Your browser did not open the inspector within a minute. Open ${address} yourself, with a code from relay inspect --no-browser`,
    )
  if (flags.json) output.object({ address, opened: true })
  else output.say(`The inspector is open in your browser: ${address}`)
}

function printCode(
  output: Output,
  {
    address,
    code,
    isRemote,
  }: { readonly address: string; readonly code: string; readonly isRemote: boolean },
  { json }: InspectFlags,
): void {
  if (json) return output.object({ address, code, opened: false })
  output.say('Open this address in a browser, and enter the code there. It works once, for 5 minutes.')
  output.result(address)
  output.result(code)
  if (isRemote) output.say(forwardingHint(address))
}

/** @throws RelayError `unavailable` when none runs. */
function runningInstance({ instance, options, saved }: Attached): RunningInstance {
  if (instance) return instance
  const { profile } = options
  const start = startCommand({ profile, sandbox: saved?.sandbox ?? false })
  throw new RelayError(
    'unavailable',
    `No relay is running for profile ${profile}, and the inspector is a page of the running one. Start it with ${start}`,
  )
}

/** @throws RelayError `usage` for what is neither a number nor `last`. */
function readEntry(word: string | undefined): string | undefined {
  if (word === undefined || word === 'last') return word
  const [, n] = /^#?([1-9]\d{0,14})$/.exec(word) ?? []
  if (n === undefined)
    throw new RelayError('usage', `${JSON.stringify(word)} is not an entry. Give its number, or last`)
  return n
}
