import { isLoopback } from '../../base/loopback.js'
import type { Context } from '../context.js'
import type { Output } from '../output/output.js'
import { openBrowser } from './browser.js'
import { forwardingHint, isRemote } from './ssh.js'

export interface AddressToOpen {
  readonly address: string
  /** Whether to open it in the browser of this machine, unless the user is on another. */
  readonly opens: boolean
  /** What the command does next; undefined for nothing to say. */
  readonly waiting?: string
}

/** Opens an address in the user's browser, and prints it for the case that none opens. */
export async function showAddress(
  { env, signal }: Context,
  output: Output,
  { address, opens, waiting }: AddressToOpen,
): Promise<void> {
  const remote = isRemote(env)
  const opened = opens && !remote && (await openBrowser(address, env['BROWSER'], { signal }))
  const isLocal = isLoopback(new URL(address).hostname)
  const lines = [
    opened ? 'Your browser opens. If it does not, open this address:' : 'Open this address in a browser:',
    '',
    `  ${address}`,
    '',
    ...(remote && isLocal ? [forwardingHint(address), ''] : []),
    ...(waiting === undefined ? [] : [waiting]),
  ]
  for (const line of lines) output.say(line)
}
