import { RelayError } from '../../base/errors.js'
import { forwardingHint, isRemote, openInspector } from '../browser.js'
import type { Flags, Shell } from '../command.js'
import { looks } from '../follow.js'
import { callInstance } from '../instance-client.js'
import { parseEntry } from '../journal.js'
import { attach, commandFor, notServed } from '../profile.js'

export async function runInspect(
  shell: Shell,
  flags: Flags & { readonly browser?: boolean },
  word?: string,
): Promise<void> {
  const { out, env } = shell
  const entry = word === undefined ? undefined : parseEntry(word)
  const attached = await attach(shell, flags, 'answering')
  const { instance } = attached
  if (!instance) throw notServed(attached)
  const { url } = instance
  const { code } = await callInstance(instance, 'inspect', {}, shell)
  const isPending = async () => (await callInstance(instance, 'inspect pending', { code }, shell)).pending
  const within = (limit: number) => looks(shell, attached, { limit })
  const address = `${url}/inspect/${entry === undefined ? '' : `deliveries/${entry}`}`
  const opened =
    flags.browser === false
      ? 'not started'
      : await openInspector(shell, { url, code, entry, isPending, looks: within })
  if (opened === 'not used')
    throw new RelayError(
      'timed_out',
      `Your browser did not open the inspector within a minute. Open ${address} yourself, with a code from ${commandFor(attached, 'inspect --no-browser')}`,
    )
  if (opened === 'opened') {
    if (shell.json) out.object({ address, opened: true })
    else out.say(`The inspector is open in your browser: ${address}`)
    return
  }
  if (shell.json) return out.object({ address, code, opened: false })
  out.say('Open this address in a browser, and enter the code there. It works once, for 5 minutes.')
  out.result(address)
  out.result(code)
  if (isRemote(env)) out.say(forwardingHint(address))
}
