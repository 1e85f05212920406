import { once } from 'node:events'
import type { Cancellable } from '../base/abort.js'

/** How long a browser's starter is waited for before it counts as started, in milliseconds. */
const START_LIMIT = 2_000

/**
 * Opens an address in the user's browser, or in the program that BROWSER names. False when that cannot be started: a
 * person then opens the address by hand.
 */
export async function openBrowser(
  address: string,
  browser: string | undefined,
  { signal }: Cancellable,
): Promise<boolean> {
  const { default: open } = await import('open')
  try {
    const child = await open(address, browser ? { app: { name: browser } } : {})
    const limit = AbortSignal.timeout(START_LIMIT)
    const [code] = await once(child, 'exit', { signal: signal ? AbortSignal.any([signal, limit]) : limit })
    return code === 0
  } catch (error) {
    // Still running is as good as it gets; what could not be started at all has an error of its own.
    return error instanceof Error && error.name === 'AbortError'
  }
}
