import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { RelayError, isError } from '../base/errors.js'

/**
 * Service name of the key in the keychain. Its account is the profile's folder, so that two data folders do not share a
 * key.
 */
const SERVICE = 'relay'
/**
 * Time limit with a terminal, where the keychain may ask the user to unlock it. Otherwise it answers within
 * milliseconds.
 */
const LIMIT_MS = 60_000
/** Time limit without a terminal, where no user can read that relay waits. */
const UNATTENDED_LIMIT_MS = 5000
const WORD_AFTER_MS = 2000

export interface KeychainOptions {
  /** The profile's folder. */
  readonly folder: string
  /** Environment of the helper process, which names the session's D-Bus. Default: that of this process. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** Called once with a message for the user, when a call takes over 2 s. */
  readonly onSlow?: ((text: string) => void) | undefined
}

/**
 * Reads the profile's key, in base64. Undefined if there is none or the keychain is locked, which it does not
 * distinguish.
 * @throws as {@link call}
 */
export async function getKey(options: KeychainOptions): Promise<string | undefined> {
  return (await call('getPassword', options)) || undefined
}

/** Stores the profile's key. @throws as {@link call} */
export async function setKey(options: KeychainOptions, key: string): Promise<void> {
  await call('setPassword', options, key)
}

/** Removes the profile's key. @throws as {@link call} */
export async function deleteKey(options: KeychainOptions): Promise<void> {
  await call('deletePassword', options)
}

/** Error code for a keytar whose install script has not run, since most installers now skip it. */
const UNBUILT = 'UNBUILT'

/** Program of the helper process. It kills itself at the time limit, since it may outlive a parent that was killed. */
const HELPER = `
const [call, service, account, limit] = process.argv.slice(1)
setTimeout(() => process.kill(process.pid, 'SIGKILL'), Number(limit)).unref()
const say = (error) => { process.stderr.write(String(error.code ?? '') + ' ' + String(error.message).split('\\n')[0]); process.exitCode = 1 }
const load = (file) => {
  try { return require(file) } catch (error) {
    // The package is installed, but its native part is missing.
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
 * Calls the operating system's keychain in a helper process. In this process, a bus that never answers would block the
 * exit and, after four calls, the file system (measured). No secret is in the helper's arguments.
 * @throws RelayError `storage` that says what to do
 */
async function call(name: string, { folder, env, onSlow }: KeychainOptions, input = ''): Promise<string> {
  const limit = process.stderr.isTTY ? LIMIT_MS : UNATTENDED_LIMIT_MS
  const child = spawn(process.execPath, ['-e', HELPER, name, SERVICE, folder, `${limit}`], {
    // Folder from which Node finds keytar.
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    ...(env && { env: { ...env } }),
    // Detached from the terminal, since Ctrl-C is meant for this process.
    detached: true,
    // Windows would otherwise open a console window.
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
      throw unusable(isError(error) ? error.message : String(error))
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

/** Explains why the keychain cannot be used and what to do, from the helper's error code and text. */
function faultOf(said: string): readonly [reason: string, fix: string] {
  if (said.startsWith('MODULE_NOT_FOUND')) return ['keytar is not installed', INSTALL]
  if (said.startsWith(UNBUILT)) return ['the install script of keytar has not run', ALLOW]
  const isBroken = /\.node\b|shared object|ERR_DLOPEN_FAILED/.test(said)
  return [said.replace(/^\S* /, ''), isBroken ? INSTALL : UNLOCK]
}
