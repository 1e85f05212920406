import { once } from 'node:events'
import { sleep, type Cancellable } from '../base/abort.js'

/** A browser's starter that has not failed within this many milliseconds has started. */
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
  const settled = new AbortController()
  const until = signal ? AbortSignal.any([signal, settled.signal]) : settled.signal
  try {
    const { default: open } = await import('open')
    const child = await open(address, browser ? { app: { name: browser } } : {})
    const exit = once(child, 'exit', { signal: until })
    // The wait keeps the process alive; the browser, which may outlive it, does not.
    const wait = sleep(START_LIMIT, { signal: until })
    return await Promise.race([exit.then(([code]) => code === 0), wait.then(() => true)])
  } catch {
    signal?.throwIfAborted()
    return false
  } finally {
    settled.abort()
  }
}
