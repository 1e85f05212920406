import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Cancellable } from '../../base/abort.js'

/**
 * Opens an address in the user's browser, or in the program that BROWSER names. Returns false if that does not start. A
 * helper process (`browser-helper.ts`) starts it, so that the browser, which can outlive relay, gets none of relay's open
 * files.
 */
export async function openBrowser(
  address: string,
  browser: string | undefined,
  { signal }: Cancellable,
): Promise<boolean> {
  // Compiled or run by tsx, as this file is.
  const extension = extname(fileURLToPath(import.meta.url))
  const file = fileURLToPath(new URL(`./browser-helper${extension}`, import.meta.url))
  const loader = extension === '.ts' ? ['--import', 'tsx'] : []
  const named = browser ? [browser] : []
  try {
    // Detached from the terminal, so that Ctrl-C reaches only this process.
    const helper = spawn(process.execPath, [...loader, file, address, ...named], {
      detached: true,
      stdio: 'ignore',
    })
    const [code] = await once(helper, 'exit', { signal })
    return code === 0
  } catch {
    signal?.throwIfAborted()
    return false
  }
}
