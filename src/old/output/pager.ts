import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Context } from '../context.js'

/** What a shell answers for a program that is not there. */
const NOT_FOUND = 127

/**
 * Shows text in the pager that PAGER names, `less` by default, and resolves when the reader leaves it. False when there is none:
 * PAGER is empty or `cat`, or names no program.
 */
export async function showInPager(text: string, env: Context['env']): Promise<boolean> {
  const pager = env['PAGER'] ?? 'less'
  if (pager === '' || pager === 'cat') return false
  const child = spawn('/bin/sh', ['-c', pager], {
    stdio: ['pipe', 1, 2],
    // As git does: F leaves at once what fits on the screen, R shows colours, X leaves the text there afterwards.
    env: { LESS: 'FRX', ...env },
  })
  // A reader who leaves early has not read everything.
  child.stdin?.on('error', () => {}).end(text)
  const [code]: (number | null)[] = await once(child, 'close')
  return code !== NOT_FOUND
}
