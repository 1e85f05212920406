import { execFile } from 'node:child_process'
import { cpSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { emptyFolder } from '../helpers/context.js'

const run = promisify(execFile)

/** Copies what a clone of this tree would hold: the files git knows, as they are now. */
async function clone(): Promise<string> {
  const folder = emptyFolder()
  const { stdout } = await run('git', ['ls-files', '-z'])
  for (const file of stdout.split('\0').filter(Boolean)) cpSync(file, path.join(folder, file))
  return folder
}

describe('a fresh clone', () => {
  it('runs after npm ci alone, and after another build', async () => {
    const cwd = await clone()
    // npm sets the run bit only when it links the program: a build that does not would break it.
    for (const args of [
      ['ci', '--no-audit', '--no-fund'],
      ['run', 'build'],
    ]) {
      await run('npm', args, { cwd })
      const { stdout } = await run('npx', ['relay', '--version'], { cwd })
      expect(stdout).toBe(`${packageJson.version}\n`)
    }
  }, 300_000)
})
