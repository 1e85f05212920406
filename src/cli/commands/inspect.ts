import { RelayError } from '../../base/errors.js'
import { STORED } from '../options.js'
import { define, type Flags, type Shell } from '../command.js'
import { forwardingHint, isRemote, openInspector } from '../browser.js'
import { wakeups } from '../follow.js'
import { callInstance } from '../instance-client.js'
import { parseEntry } from '../journal.js'
import type { Output } from '../output/output.js'
import { notServed } from '../advice.js'
import { openProfile } from '../profile.js'

export const inspectCommand = define({
  description: `Opens the inspector of the running relay serve in the browser: a page where deliveries appear as they come. It shows one
delivery with its payload, its signature and every attempt, forwards it again, sends an edited copy, and explains refused
requests. It opens with a one-time code, which appears in no process list. It stays open for 24 hours, also when relay
restarts.`,
  examples: `relay inspect
relay inspect last
relay inspect --no-browser  print the address and the code, also over SSH`,
  args: [['[entry]', 'entry number, or last']],
  options: [['--no-browser', 'print the address and a code instead of opening it']],
  env: STORED.env,
  exits: [[1, 'no relay serve runs'], [7, 'the browser did not open the page within a minute'], 130],
  run: runInspect,
  print,
  json: (opened) => (opened.opened ? opened : { address: opened.address, code: opened.code, opened: false }),
})

type InspectInput = Flags & { readonly entry?: string | undefined; readonly browser?: boolean }

async function runInspect(shell: Shell, flags: InspectInput) {
  const entry = flags.entry === undefined ? undefined : parseEntry(flags.entry)
  await using profile = await openProfile(shell, flags, { problems: 'fail' })
  const { instance } = profile
  if (!instance) throw notServed(profile)
  const { url } = instance
  const { code } = await callInstance(instance, 'inspect', {}, shell)
  const isPending = async () => (await callInstance(instance, 'inspect pending', { code }, shell)).pending
  const within = (limit: number) => wakeups(shell, profile, { limit })
  const address = `${url}/inspect/${entry === undefined ? '' : `deliveries/${entry}`}`
  const opened =
    flags.browser === false
      ? 'not started'
      : await openInspector(shell, { url, code, entry, isPending, wakeups: within })
  if (opened === 'not used')
    throw new RelayError(
      'timed_out',
      `Your browser did not open the inspector within a minute. Open ${address} yourself, with a code from ${profile.command('inspect --no-browser')}`,
    )
  const hint = isRemote(shell.env) ? forwardingHint(address) : undefined
  return opened === 'opened'
    ? { address, opened: true as const }
    : { address, code, hint, opened: false as const }
}

function print(opened: Awaited<ReturnType<typeof runInspect>>, out: Output): void {
  const { address } = opened
  if (opened.opened) return out.say(`The inspector is open in your browser: ${address}`)
  out.say('Open this address in a browser, and enter the code there. It works once, for 5 minutes.')
  out.result(address)
  out.result(opened.code)
  if (opened.hint !== undefined) out.say(opened.hint)
}
