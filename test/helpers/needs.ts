import { spawnSync } from 'node:child_process'

/** The Debian package that brings each program tests ask for. */
const PACKAGES = { strace: 'strace', chromium: 'chromium', tmux: 'tmux' } as const

/**
 * Whether a test that needs a system program must be left out. Where RELAY_TEST_ALL is set (CI) nothing may be:
 * a missing program is then an error, so that a green run always means the whole run.
 */
export function lacks(program: keyof typeof PACKAGES): boolean {
  const found = spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined
  if (found) return false
  if (process.env['RELAY_TEST_ALL'])
    throw new Error(`${program} is missing: apt-get install ${PACKAGES[program]}`)
  process.stderr.write(`left out: tests that need ${program} (Debian package ${PACKAGES[program]})\n`)
  return true
}
