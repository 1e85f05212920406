import { readFileSync } from 'node:fs'
import type { ReadStream } from 'node:tty'

/** Signals of the terminal's own keys, which it no longer sends while relay reads single keys. */
const SIGNALS: Readonly<Record<string, NodeJS.Signals>> = {
  '\u0003': 'SIGINT',
  '\u001a': 'SIGTSTP',
  '\u001c': 'SIGQUIT',
}
/**
 * Most characters that are treated as keys: more at once are an escape sequence or pasted text, which must have no
 * effect.
 */
const MAX_KEYS = 2

/**
 * Reads single keys from a terminal until the returned function is called. Undefined if standard input is no terminal
 * or belongs to another program: changing its mode would stop this process (SIGTTOU).
 */
export function readKeys(stdin: ReadStream, listener: (key: string) => void): (() => void) | undefined {
  if (!stdin.isTTY || !isInForeground()) return undefined
  const onData = (chunk: Buffer): void => {
    const text = chunk.toString()
    if (text.length <= MAX_KEYS) for (const key of text) onKey(key)
  }
  const onKey = (key: string): void => {
    const signal = SIGNALS[key]
    if (!signal) return listener(key)
    if (signal !== 'SIGINT') stdin.setRawMode(false)
    // Sent to the whole process group, as the terminal would.
    process.kill(0, signal)
  }
  const onContinued = (): void => {
    if (isInForeground()) stdin.setRawMode(true)
    else end()
  }
  const end = (): void => {
    process.off('SIGCONT', onContinued)
    stdin.off('data', onData)
    stdin.pause()
    if (isInForeground()) stdin.setRawMode(false)
  }
  stdin.setRawMode(true)
  stdin.on('data', onData).unref()
  process.on('SIGCONT', onContinued)
  return end
}

function isInForeground(): boolean {
  try {
    const [group, foreground] = groups()
    return group === foreground
  } catch {
    return false
  }
}

/** Returns the process group, and the foreground group of the terminal; -1 if there is no terminal. */
function groups(): readonly (string | undefined)[] {
  if (process.platform === 'linux') {
    // The name comes first and can hold anything. After it: state, parent, group, session, terminal, foreground group
    // (proc_pid_stat(5)).
    const stat = readFileSync('/proc/self/stat', 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return [fields[2], fields[5]]
  }
  // Loaded only here, since it would slow down every start.
  const { execFileSync } = process.getBuiltinModule('node:child_process')
  const args = ['-o', 'pgid=,tpgid=', '-p', String(process.pid)]
  return execFileSync('ps', args, { encoding: 'utf8' }).trim().split(/\s+/)
}
