import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { RelayError } from '../base/errors.js'

/** The name that the key has in the keychain, with the profile's folder as its account: two data folders do not share one. */
const SERVICE = 'relay'
/** A keychain that works answers within some milliseconds; one that asks its user to unlock it takes as long as the user. */
const LIMIT_MS = 60_000
/** Without a terminal, where no user can read that it waits. */
const UNATTENDED_LIMIT_MS = 5000
const WORD_AFTER_MS = 2000

export interface KeychainOptions {
  /** The profile's folder. */
  readonly folder: string
  /** The environment of the helper, which names the session's D-Bus. Default: this process's. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** Called once when a call takes over 2 s, with what to tell the user. */
  readonly onSlow?: ((text: string) => void) | undefined
}

/** The profile's key, base64; undefined where there is none, and where the keychain is locked: it says the same of both. @throws as {@link call} */
export async function getKey(options: KeychainOptions): Promise<string | undefined> {
  return (await call('getPassword', options)) || undefined
}

/** @throws as {@link call} */
export async function setKey(options: KeychainOptions, key: string): Promise<void> {
  await call('setPassword', options, key)
}

/** @throws as {@link call} */
export async function deleteKey(options: KeychainOptions): Promise<void> {
  await call('deletePassword', options)
}

/** The code of a keytar whose install script has not run, as most installers now leave it out. */
const UNBUILT = 'UNBUILT'

/** Ends itself when it takes too long, since it may outlive a parent that was killed. */
const HELPER = `
const [call, service, account, limit] = process.argv.slice(1)
setTimeout(() => process.kill(process.pid, 'SIGKILL'), Number(limit)).unref()
const say = (error) => { process.stderr.write(String(error.code ?? '') + ' ' + String(error.message).split('\\n')[0]); process.exitCode = 1 }
const load = (file) => {
  try { return require(file) } catch (error) {
    // Its native part: the package is there.
    if (error.code === 'MODULE_NOT_FOUND') error.code = '${UNBUILT}'
    throw error
  }
}
const run = async () => {
  const keytar = load(require.resolve('keytar'))
  const given = call === 'setPassword' ? [require('node:fs').readFileSync(0, 'utf8')] : []
  const value = await keytar[call](service, account, ...given)
  if (typeof value === 'string') process.stdout.write(value)
}
run().catch(say)
`

/**
 * Asks the operating system's keychain in a process of its own: on a bus that never answers, a call in this process would block its exit
 * and, after four, its file system (measured). No secret is in its arguments.
 * @throws RelayError `storage` that says what to do
 */
async function call(name: string, { folder, env, onSlow }: KeychainOptions, input = ''): Promise<string> {
  const limit = process.stderr.isTTY ? LIMIT_MS : UNATTENDED_LIMIT_MS
  const child = spawn(process.execPath, ['-e', HELPER, name, SERVICE, folder, `${limit}`], {
    // Where it finds keytar.
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    ...(env && { env: { ...env } }),
    // Out of the terminal's reach: Ctrl-C is for this process.
    detached: true,
    // Windows would open a console for it.
    windowsHide: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const slow = setTimeout(
    () => onSlow?.('Waiting for the keychain. It may ask you to unlock it'),
    WORD_AFTER_MS,
  )
  const timer = setTimeout(() => child.kill('SIGKILL'), limit)
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  try {
    const [code, signal] = await once(child, 'close').catch((error: unknown) => {
      throw unusable(error instanceof Error ? error.message : String(error))
    })
    if (code === 0) return out
    throw unusable(signal === null ? err : `it did not answer within ${limit / 1000} s`)
  } finally {
    clearTimeout(slow)
    clearTimeout(timer)
  }
}

const isLinux = process.platform === 'linux'
const INSTALL = isLinux
  ? 'Install libsecret (Debian: libsecret-1-0), then install relay again'
  : 'Install relay again, with its optional packages'
const ALLOW =
  'Install relay again, and allow that script (npm: --allow-scripts=keytar, pnpm: --allow-build=keytar)'
const UNLOCK = isLinux
  ? 'Start a keyring in your D-Bus session and unlock it (Debian: gnome-keyring)'
  : 'Unlock it'

function unusable(said: string): RelayError {
  const [reason, fix] = faultOf(said)
  return new RelayError('storage', `The keychain cannot be used: ${reason}. ${fix}, or use --store file`)
}

/** Why it cannot be used, and what to do, by the code and the text that the helper said. */
function faultOf(said: string): readonly [reason: string, fix: string] {
  if (said.startsWith('MODULE_NOT_FOUND')) return ['keytar is not installed', INSTALL]
  if (said.startsWith(UNBUILT)) return ['the install script of keytar has not run', ALLOW]
  const isBroken = /\.node\b|shared object|ERR_DLOPEN_FAILED/.test(said)
  return [said.replace(/^\S* /, ''), isBroken ? INSTALL : UNLOCK]
}
