import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/**
 * Installs packages that only a test of other people's projects needs, and returns the folder that has them in `node_modules`.
 * The next run finds them there: the folder's name is a digest of their versions.
 * @param packages versions by name, as of npm: `npm:typescript@5.9.3` for one under another name
 */
export async function installed(packages: Readonly<Record<string, string>>): Promise<string> {
  const manifest = JSON.stringify({ private: true, dependencies: packages })
  const digest = createHash('sha256').update(manifest).digest('hex').slice(0, 16)
  const cache = path.resolve('node_modules/.cache')
  const folder = path.join(cache, `tools-${digest}`)
  if (existsSync(folder)) return folder
  mkdirSync(cache, { recursive: true })
  const made = mkdtempSync(`${folder}-`)
  writeFileSync(path.join(made, 'package.json'), manifest)
  // Without a prefix, npm takes the project that has this node_modules.
  const options = ['--prefix', made, '--prefer-offline', '--no-audit', '--no-fund', '--no-package-lock']
  await run('npm', ['install', ...options], { cwd: made })
  try {
    renameSync(made, folder)
  } catch (error) {
    // Another run was faster.
    rmSync(made, { recursive: true })
    if (!existsSync(folder)) throw error
  }
  return folder
}
