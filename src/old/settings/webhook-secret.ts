import { existsSync, linkSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { errorCode } from '../../base/errno.js'
import { RelayError } from '../../base/errors.js'
import { Secret } from '../../base/secret.js'
import type { StoreText } from '../../base/settings.js'
import { isSharedAddress } from '../../base/shared-store.js'
import { makeFolder } from '../../base/make-folder.js'
import { readSmallFile } from './small-file.js'

/** The file with the webhook secret that relay made for a profile. */
export function webhookSecretFile(folder: string): string {
  return path.join(folder, 'webhook-secret')
}

/**
 * The profile's own webhook secret, made at first use and readable by its owner alone (0600). With a memory store nothing is
 * written, so a new one is made each time.
 * @throws RelayError `settings` when the file cannot be read or written, or is empty; with a shared store, which other machines use.
 */
export function readWebhookSecret(folder: string, store: StoreText): Secret {
  if (store === 'memory') return new Secret(randomHex(32))
  if (isSharedAddress(store))
    throw new RelayError(
      'settings',
      'RELAY_WEBHOOK_SECRET is not set. With a shared store every relay needs the same: make it with openssl rand -hex 32',
    )
  return madeWebhookSecret(folder, randomHex(32))
}

/** The profile's own secret, which is `made` if it had none. */
function madeWebhookSecret(folder: string, made: string): Secret {
  const file = webhookSecretFile(folder)
  try {
    if (!existsSync(file)) createWhole(folder, file, made)
  } catch (cause) {
    if (cause instanceof RelayError) throw cause
    const why = `${file} cannot be created. Set RELAY_HOME to a folder of yours`
    throw new RelayError('settings', why, { cause })
  }
  const secret = readSavedWebhookSecret(folder, 'file')
  if (secret) return secret
  throw new RelayError('settings', `${file} is empty. Remove it, and relay makes a new secret`)
}

/**
 * Makes this the profile's own webhook secret, unless it has one; returns the one that it then has.
 * @throws RelayError `settings` as {@link readWebhookSecret}
 */
export function adoptWebhookSecret(folder: string, secret: Secret): Secret {
  return madeWebhookSecret(folder, secret.reveal())
}

/** A webhook secret for a process that receives no deliveries. Nothing is read or written. */
export function unusedWebhookSecret(): Secret {
  return new Secret(randomHex(32))
}

/**
 * The secret that relay made for the profile, if it has made one. Makes none.
 * @throws RelayError `settings` when the file exists and cannot be read.
 */
export function readSavedWebhookSecret(folder: string, store: StoreText): Secret | undefined {
  if (store === 'memory' || isSharedAddress(store)) return undefined
  const text = readSmallFile(webhookSecretFile(folder))?.trimEnd()
  return text ? new Secret(text) : undefined
}

/** Creates the file if it does not exist. Linking a finished file means that no process and no crash sees half a secret. */
function createWhole(folder: string, file: string, secret: string): void {
  makeFolder(folder)
  const draft = `${file}.${randomHex(6)}`
  try {
    writeFileSync(draft, `${secret}\n`, { flag: 'wx', mode: 0o600 })
    linkSync(draft, file)
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Uses the global `crypto`, since importing node:crypto would slow down every start. */
function randomHex(bytes: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('hex')
}
