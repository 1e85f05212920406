import { existsSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { RelayError } from '../base/errors.js'
import { Secret } from '../base/secret.js'
import type { StoreKind } from '../base/settings.js'

/** Where a profile keeps the webhook secret that relay made for it. */
export function webhookSecretFile(folder: string): string {
  return path.join(folder, 'webhook-secret')
}

/**
 * The profile's own webhook secret, made at first use and kept readable by its owner alone (0600). A memory store
 * writes nothing, so there it is made anew each time.
 * @throws RelayError `settings` when the file cannot be read or written, or is empty.
 */
export function readWebhookSecret(folder: string, store: StoreKind): Secret {
  if (store === 'memory') return new Secret(freshSecret())
  const file = webhookSecretFile(folder)
  try {
    if (!existsSync(file)) createWhole(folder, file)
    const text = readFileSync(file, 'utf8').trimEnd()
    if (text !== '') return new Secret(text)
  } catch (cause) {
    throw new RelayError('settings', `${file} cannot be read or made: set RELAY_HOME to a folder of yours`, {
      cause,
    })
  }
  throw new RelayError('settings', `${file} is empty: remove it, and a new secret is made`)
}

/**
 * The secret that relay made for the profile, if it has made one. Makes none.
 * @throws RelayError `settings` when the file is there and cannot be read.
 */
export function readKeptWebhookSecret(folder: string, store: StoreKind): Secret | undefined {
  if (store === 'memory') return undefined
  const file = webhookSecretFile(folder)
  try {
    const text = readFileSync(file, 'utf8').trimEnd()
    return text === '' ? undefined : new Secret(text)
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw new RelayError('settings', `${file} cannot be read`, { cause })
  }
}

function freshSecret(): string {
  return randomHex(32)
}

/** Makes the file unless it is there. Linking a finished file shows no other process, and no crash, half a secret. */
function createWhole(folder: string, file: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const draft = `${file}.${randomHex(6)}`
  try {
    writeFileSync(draft, `${freshSecret()}\n`, { flag: 'wx', mode: 0o600 })
    linkSync(draft, file)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Of the global `crypto`: all of node:crypto would be loaded at every start. */
function randomHex(bytes: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('hex')
}
