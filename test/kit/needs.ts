import { spawnSync } from 'node:child_process'
import { describe, TestRunner } from 'vitest'
import { emptyFolder } from './folder.js'
import { postgresProgram } from './postgres-server.js'

/** What a suite may need that is not there everywhere, and what to do about it. */
const HINTS = {
  strace: 'apt-get install strace',
  chromium: 'apt-get install chromium',
  tmux: 'apt-get install tmux',
  zsh: 'apt-get install zsh',
  fish: 'apt-get install fish',
  git: 'apt-get install git',
  jq: 'apt-get install jq',
  curl: 'apt-get install curl',
  openssl: 'apt-get install openssl',
  keyring: 'apt-get install dbus gnome-keyring libsecret-1-dev pkg-config, then npm ci, which builds keytar',
  registry: 'connect this machine to the npm registry',
  Linux: 'run it there',
  postgres: 'apt-get install postgresql',
  haproxy: 'apt-get install haproxy',
  pgbouncer: 'apt-get install pgbouncer',
  'systemd-analyze': 'apt-get install systemd',
  mmdebstrap: 'apt-get install mmdebstrap',
  'docker-compose': 'apt-get install docker-compose',
  mount: 'run it as root, with the right to mount',
  root: 'run it as root, which can give a file to another user',
} as const

type Need = keyof typeof HINTS

/** Rights, which not every machine can give: without them a suite may be left out everywhere. */
const RIGHTS: ReadonlySet<Need> = new Set(['mount', 'root'])

/** The programs of a D-Bus session with a keyring. */
const KEYRING = ['dbus-daemon', 'dbus-send', 'gnome-keyring-daemon'] as const

/**
 * `describe` for a suite that needs system programs, a keyring, Linux, or the right to mount. Without them the suite is left out, and stderr
 * says which and why. Where RELAY_TEST_ALL is set (CI) nothing may be left out but for lack of a right: it then is an
 * error, so that a green run always means the whole run.
 */
export function describeWith(needs: Need | readonly Need[], name: string, suite: () => void): void {
  const describeOrSkip = has(needs, name) ? describe : describe.skip
  describeOrSkip(name, suite)
}

/** Whether all that the suite needs is there; otherwise as {@link describeWith} says. */
export function has(needs: Need | readonly Need[], name: string): boolean {
  const need = [needs].flat().find((each) => !isThere(each))
  if (need === undefined) return true
  const missing = `"${name}" needs ${need} (${HINTS[need]})`
  if (!RIGHTS.has(need) && process.env['RELAY_TEST_ALL']) throw new Error(missing)
  process.stderr.write(`left out: ${missing}\n`)
  return false
}

/** Leaves out the running test, of which this is the body or a `beforeEach`. */
export function leaveOut(reason: string): never {
  const test = TestRunner.getCurrentTest()
  if (!test) throw new Error(`no test is running that could be left out: ${reason}`)
  return test.context.skip(reason)
}

const looked = new Map<Need, boolean>()

function isThere(need: Need): boolean {
  const known = looked.get(need) ?? look(need)
  looked.set(need, known)
  return known
}

function look(need: Need): boolean {
  if (need === 'postgres') return postgresProgram('initdb') !== undefined
  if (need === 'registry')
    return spawnSync('npm', ['view', 'npm', 'version'], { stdio: 'ignore' }).status === 0
  if (need === 'Linux') return process.platform === 'linux'
  if (need === 'root') return process.geteuid?.() === 0
  if (need === 'mount') return mounts('mount -t tmpfs none "$1"')
  if (need === 'keyring') return KEYRING.every((program) => runs(program)) && loads('keytar')
  return runs(need)
}

function runs(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined
}

/** Whether a file system can be mounted, where only that command sees it. */
function mounts(command: string): boolean {
  const argv = ['--mount', 'sh', '-c', command, 'sh', emptyFolder()]
  return spawnSync('unshare', argv, { stdio: 'ignore' }).status === 0
}

function loads(module: string): boolean {
  return spawnSync(process.execPath, ['-e', `require('${module}')`], { stdio: 'ignore' }).status === 0
}
