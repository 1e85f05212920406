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

export interface Keychain {
  /** The profile's key, base64; undefined where there is none, or where the keychain is locked: it says the same of both. */
  get(): Promise<string | undefined>
  set(key: string): Promise<void>
  delete(): Promise<void>
}

export interface KeychainOptions {
  /** The profile's folder. */
  readonly folder: string
  /** The environment of the helper, which names the session's D-Bus. Default: this process's. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** Called once when a call takes over 2 s, with what to tell the user. */
  readonly onSlow?: ((text: string) => void) | undefined
}

/**
 * The operating system's keychain, asked by a process of its own for each call: on a bus that never answers, a call in this process would
 * block its exit and, after four, its file system (measured). No secret is in its arguments.
 * Every method rejects with RelayError `storage` that says what to do.
 */
export function createKeychain(options: KeychainOptions): Keychain {
  return {
    async get() {
      const text = await call('getPassword', options)
      return text === '' ? undefined : text
    },
    async set(key) {
      await call('setPassword', options, key)
    },
    async delete() {
      await call('deletePassword', options)
    },
  }
}

/** Ends itself when it takes too long, since it may outlive a parent that was killed. */
const HELPER = `
const [call, service, account, limit] = process.argv.slice(1)
setTimeout(() => process.kill(process.pid, 'SIGKILL'), Number(limit)).unref()
const say = (error) => { process.stderr.write(String(error.code ?? '') + ' ' + String(error.message).split('\\n')[0]); process.exitCode = 1 }
const run = async () => {
  const keytar = require('keytar')
  const given = call === 'setPassword' ? [require('node:fs').readFileSync(0, 'utf8')] : []
  const value = await keytar[call](service, account, ...given)
  if (typeof value === 'string') process.stdout.write(value)
}
run().catch(say)
`

async function call(name: string, { folder, env, onSlow }: KeychainOptions, input = ''): Promise<string> {
  const limit = process.stderr.isTTY ? LIMIT_MS : UNATTENDED_LIMIT_MS
  const child = spawn(process.execPath, ['-e', HELPER, name, SERVICE, folder, `${limit}`], {
    // Where it finds keytar.
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    ...(env && { env: { ...env } }),
    // Out of the terminal's reach: Ctrl-C is for this process.
    detached: true,
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
    const [code, signal] = await once(child, 'close')
    if (code === 0) return out
    throw unusable(signal === null ? err : `it did not answer within ${limit / 1000} s`)
  } catch (error) {
    throw error instanceof RelayError
      ? error
      : unusable(error instanceof Error ? error.message : String(error))
  } finally {
    clearTimeout(slow)
    clearTimeout(timer)
  }
}

const isLinux = process.platform === 'linux'
const INSTALL = isLinux
  ? 'Install libsecret (Debian: libsecret-1-0), then install relay again'
  : 'Install relay again, with its optional packages'
const UNLOCK = isLinux
  ? 'Start a keyring in your D-Bus session and unlock it (Debian: gnome-keyring)'
  : 'Unlock it'

function unusable(said: string): RelayError {
  const isMissing = said.startsWith('MODULE_NOT_FOUND')
  const isBroken = !isMissing && /\.node\b|shared object|ERR_DLOPEN_FAILED/.test(said)
  const reason = isMissing ? 'keytar is not installed' : said.replace(/^\S* /, '')
  const fix = isMissing || isBroken ? INSTALL : UNLOCK
  return new RelayError('storage', `The keychain cannot be used: ${reason}. ${fix}, or use --store file`)
}

/** The keychain is locked, or its key was removed: the records stay encrypted, and no other key is made. */
export function noKey(): RelayError {
  return new RelayError(
    'storage',
    `The keychain gives no key for this profile: it is locked, or the key was removed. Unlock it; if the key is gone, run relay reset and sign in again`,
  )
}

/** The keychain's key is of another profile that had this folder, or somebody changed it. */
export function otherKey(): RelayError {
  return new RelayError(
    'storage',
    'The key in the keychain is not the one that the tokens of this profile are encrypted with. Put that one back, or run relay reset and sign in again',
  )
}
