import { readdirSync, readFileSync } from 'node:fs'
import { sleep } from '../base/abort.js'

/** How often a group is checked for its end. */
const POLL_MS = 20

/**
 * Ends every process of a group: with SIGTERM, and with SIGKILL those that still run after `grace` milliseconds. Resolves once
 * none runs any more, or SIGKILL was sent.
 */
export async function endGroup(id: number, grace: number): Promise<void> {
  if (!send(id, 'SIGTERM')) return
  for (const until = performance.now() + grace; performance.now() < until;) {
    await sleep(POLL_MS)
    if (!runs(id)) return
  }
  send(id, 'SIGKILL')
}

/** False when there is no such group. */
function send(id: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-id, signal)
  } catch {
    return false
  }
}

/**
 * A process that has ended stays in its group until its parent has waited for it, which never happens where relay is the first
 * process of a container. Such processes do not count if there is a /proc.
 */
function runs(id: number): boolean {
  if (!send(id, 0)) return false
  try {
    return readdirSync('/proc').some((name) => /^\d+$/.test(name) && isRunning(name, id))
  } catch {
    return true
  }
}

function isRunning(pid: string, group: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name before it is in parentheses, and may contain any character.
    const [state = '', , itsGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(itsGroup) === group && !'ZX'.includes(state)
  } catch {
    return false
  }
}
