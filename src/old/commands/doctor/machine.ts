import { statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import path from 'node:path'
import { getuid, platform } from 'node:process'
import { errorCode } from '../../../base/errno.js'
import { RelayError } from '../../../base/errors.js'
import { tilde } from '../../output/display-path.js'
import { webhookSecretFile } from '../../settings/webhook-secret.js'
import { type CheckResult, fail, ok, skip } from './result.js'

/** The oldest supported Node, as in package.json. */
const MIN_NODE = [20, 18] as const

export function checkNode(version: string): CheckResult {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [minMajor, minMinor] = MIN_NODE
  if (major > minMajor || (major === minMajor && minor >= minMinor)) return ok(`Node ${version}`)
  const required = MIN_NODE.join('.')
  return fail(
    `Node ${version} is older than ${required}`,
    `install Node ${required} or later: https://nodejs.org`,
  )
}

/** Whether only their owner can read the profile's folder and the secret in it. */
export async function checkFolder(folder: string): Promise<CheckResult> {
  const found = await statOf(folder).catch(unreadable)
  if (found instanceof RelayError) return fail(found.message, `ls -ld ${tilde(path.dirname(folder))}`)
  if (!found) return skip(`${tilde(folder)} does not exist yet; relay serve creates it`)
  if (!found.isDirectory())
    return fail(`${tilde(folder)} is not a folder`, `mv ${tilde(folder)} ${tilde(folder)}.old`)
  if (platform === 'win32') return ok(tilde(folder))
  const owner = getuid?.()
  for (const file of [folder, webhookSecretFile(folder)]) {
    const about = await statOf(file)
    if (!about) continue
    if (about.uid !== owner)
      return fail(`${tilde(file)} belongs to another user`, `sudo chown -R "$(id -un)" ${tilde(folder)}`)
    const open = about.mode & 0o077
    const command = `chmod ${about.isDirectory() ? '700' : '600'} ${tilde(file)}`
    if (open !== 0) return fail(`other users can read or write ${tilde(file)}`, command)
  }
  return ok(`only you can read ${tilde(folder)}`)
}

/** Whether there is no such file, as opposed to one that cannot be reached. */
export function isMissing(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) === undefined
  } catch {
    return false
  }
}

function unreadable(error: unknown): RelayError {
  const { path: file = 'the folder' } = Object(error)
  return new RelayError('settings', `${tilde(String(file))} cannot be read (${errorCode(error)})`)
}

async function statOf(file: string) {
  try {
    return await stat(file)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}
