import { readdirSync, readFileSync } from 'node:fs'

/** What `/proc/<pid>/<file>` holds; nothing once the process is gone. Linux only. */
export function readProc(pid: number, file: 'cmdline' | 'environ' | 'stat' | 'status'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/** The numbers of all processes of this machine. */
export function processes(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

/** The command lines of all processes, as any user can list them. */
export function commandLines(): string {
  return processes()
    .map((pid) => readProc(pid, 'cmdline'))
    .join('\n')
}

/** The processes that a process has started and that run. */
export function childrenOf(parent: number): number[] {
  return processes().filter((pid) => statusOf(pid)?.parent === parent && isAlive(pid))
}

/** Not so for one that has ended and whose parent has not asked how. */
export function isAlive(pid: number): boolean {
  return !['Z', undefined].includes(statusOf(pid)?.state)
}

/** The process's state and parent, which follow its name: that is in brackets, and may hold any character. */
function statusOf(pid: number): { state: string | undefined; parent: number } | undefined {
  const stat = readProc(pid, 'stat')
  const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return stat === '' ? undefined : { state, parent: Number(parent) }
}

/** The memory of a process that no file stands behind, in MiB. */
export function memoryOf(pid: number): number {
  return Number(/RssAnon:\s+(\d+) kB/.exec(readProc(pid, 'status'))?.[1]) / 1024
}
