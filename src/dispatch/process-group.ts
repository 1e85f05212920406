import { readdirSync, readFileSync } from 'node:fs'
import { sleep } from '../base/abort.js'

/** How often it is looked whether a group has ended. Milliseconds. */
const LOOK_EVERY = 20

/**
 * Ends every process of a group: asks with SIGTERM, and after `grace` milliseconds ends with SIGKILL what is still there.
 * Resolves once nothing runs any more, or SIGKILL was sent.
 */
export async function endGroup(id: number, grace: number): Promise<void> {
  if (!send(id, 'SIGTERM')) return
  for (const until = performance.now() + grace; performance.now() < until;) {
    await sleep(LOOK_EVERY)
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
 * A process that has ended, but that nobody has waited for, still is in its group; where relay is a container's first
 * process, nobody ever does. So where there is /proc, those do not count.
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
    // The name before it is in brackets, and may hold any character.
    const [state = '', , itsGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(itsGroup) === group && !'ZX'.includes(state)
  } catch {
    return false
  }
}
