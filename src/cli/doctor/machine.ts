import { stat } from 'node:fs/promises'
import { getuid, platform } from 'node:process'
import { tilde } from '../place.js'
import { webhookSecretFile } from '../webhook-secret.js'
import { none, ok, wrong, type Verdict } from './finding.js'

/** The oldest Node that relay runs on: what package.json says. */
const OLDEST_NODE = [20, 18] as const

export function checkNode(version: string): Verdict {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [oldestMajor, oldestMinor] = OLDEST_NODE
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return ok(`Node ${version}`)
  const wanted = OLDEST_NODE.join('.')
  return wrong(
    `Node ${version} is older than ${wanted}`,
    `install Node ${wanted} or later: https://nodejs.org`,
  )
}

/** Whether the profile's folder, and the secret in it, are for their owner alone. */
export async function checkFolder(folder: string): Promise<Verdict> {
  const found = await statOf(folder)
  if (!found) return none(`${tilde(folder)} is not there yet: relay serve makes it`)
  if (!found.isDirectory())
    return wrong(`${tilde(folder)} is no folder`, `mv ${tilde(folder)} ${tilde(folder)}.old`)
  if (platform === 'win32') return ok(tilde(folder))
  const owner = getuid?.()
  for (const file of [folder, webhookSecretFile(folder)]) {
    const about = await statOf(file)
    if (!about) continue
    if (about.uid !== owner)
      return wrong(`${tilde(file)} belongs to another user`, `sudo chown -R "$(id -un)" ${tilde(folder)}`)
    const open = about.mode & 0o077
    const command = `chmod ${about.isDirectory() ? '700' : '600'} ${tilde(file)}`
    if (open !== 0) return wrong(`${tilde(file)} is open to other users`, command)
  }
  return ok(`${tilde(folder)} is for you alone`)
}

async function statOf(file: string) {
  try {
    return await stat(file)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
