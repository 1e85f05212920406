import { spawnSync } from 'node:child_process'
import { describe } from 'vitest'

/** What a suite may need that is not there everywhere, and what to do about it. */
const HINTS = {
  strace: 'apt-get install strace',
  chromium: 'apt-get install chromium',
  tmux: 'apt-get install tmux',
  zsh: 'apt-get install zsh',
  fish: 'apt-get install fish',
  jq: 'apt-get install jq',
  curl: 'apt-get install curl',
  openssl: 'apt-get install openssl',
  keyring: 'apt-get install dbus gnome-keyring libsecret-1-dev pkg-config, then npm ci, which builds keytar',
  Linux: 'run it there',
} as const

/** The programs of a D-Bus session with a keyring. */
const KEYRING = ['dbus-daemon', 'dbus-send', 'gnome-keyring-daemon'] as const

type Need = keyof typeof HINTS

/**
 * `describe` for a suite that needs system programs, a keyring, or Linux. Without them the suite is left out, and stderr
 * says which and why. Where RELAY_TEST_ALL is set (CI) nothing may be left out: it then is an error, so that a green run always
 * means the whole run.
 */
export function describeWith(needs: Need | readonly Need[], name: string, suite: () => void): void {
  const need = [needs].flat().find((each) => !isThere(each))
  const there = need === undefined
  const missing = there ? '' : `"${name}" needs ${need} (${HINTS[need]})`
  if (!there && process.env['RELAY_TEST_ALL']) throw new Error(missing)
  if (!there) process.stderr.write(`left out: ${missing}\n`)
  const describeOrSkip = there ? describe : describe.skip
  describeOrSkip(name, suite)
}

function isThere(need: Need): boolean {
  if (need === 'Linux') return process.platform === 'linux'
  if (need === 'keyring') return KEYRING.every((program) => runs(program)) && loads('keytar')
  return runs(need)
}

function runs(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined
}

function loads(module: string): boolean {
  return spawnSync(process.execPath, ['-e', `require('${module}')`], { stdio: 'ignore' }).status === 0
}
