import { execFile } from 'node:child_process'
import { dirname, extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Cancellable } from '../base/abort.js'

export interface QuickCheckOptions extends Cancellable {
  /** Milliseconds. */
  readonly limit: number
}

/**
 * Runs SQLite's `quick_check` on a database that is there. Resolves to `ok`, to what is wrong, or to undefined when the check
 * did not end within its limit.
 * @throws the signal's reason, and an error when the check cannot be run.
 */
export async function quickCheck(
  file: string,
  { limit, signal }: QuickCheckOptions,
): Promise<string | undefined> {
  const extension = extname(fileURLToPath(import.meta.url))
  const helper = fileURLToPath(new URL(`./quick-check-helper${extension}`, import.meta.url))
  const byTsx = extension === '.ts' ? ['--import', 'tsx'] : []
  const options = { cwd: dirname(helper), timeout: limit, killSignal: 'SIGKILL', signal } as const
  const found = await new Promise<string | undefined>((resolve, reject) => {
    execFile(process.execPath, [...byTsx, helper, file], options, (error, output) => {
      if (!error) resolve(output)
      else if (error.killed === true) resolve(undefined)
      else reject(signal?.aborted ? signal.reason : error)
    })
  })
  return found
}
