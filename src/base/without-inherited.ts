import { closeSync, existsSync, openSync, readdirSync, readFileSync } from 'node:fs'

/** How to start a program. */
export interface Start {
  readonly command: string
  readonly args: readonly string[]
  /** Its file descriptors, from 0 on. */
  readonly stdio: readonly ('pipe' | 'ignore' | 'ipc' | number)[]
}

/** Other shells close descriptors 0 to 9 only. */
const BASH = '/bin/bash'

/**
 * Closes every descriptor from `$0` on, then becomes the program. `--norc`: bash takes a socket as standard input (Node's pipes
 * are sockets) for a remote login and would run ~/.bashrc. `-p`: BASH_ENV and functions in the environment do not run.
 */
const CLOSE =
  'for __fd in /proc/$$/fd/*; do if ((${__fd##*/} >= $0)); then eval "exec ${__fd##*/}>&-"; fi; done; exec "$@"'

/** O_CLOEXEC on Linux, which Node does not name. */
const CLOSED_BY_EXEC = 0o2_000_000

/**
 * Starts a program with `run` so that it gets the descriptors of `stdio` and no others: also none that this process inherited
 * itself. Node and SQLite open their files so that no child inherits them (O_CLOEXEC). On macOS and Windows nothing is inherited.
 *
 * bash closes them before it becomes the program. Without bash, the program gets /dev/null in place of each.
 * @throws the system's error, also from `run`.
 */
export function withoutInherited<T>(start: Start, run: (start: Start) => T, bash = BASH): T {
  if (process.platform !== 'linux') return run(start)
  const { command, args, stdio } = start
  if (existsSync(bash))
    return run({
      command: bash,
      args: ['--norc', '-p', '-c', CLOSE, `${stdio.length}`, command, ...args],
      stdio,
    })
  const nothing = openSync('/dev/null', 'r+')
  try {
    return run({ command, args, stdio: covered(stdio, nothing) })
  } finally {
    closeSync(nothing)
  }
}

/** Replaces each descriptor that would be inherited by `nothing`; libuv skips those that are 'ignore' here. */
function covered(stdio: Start['stdio'], nothing: number): Start['stdio'] {
  const inherited = inheritable().filter((descriptor) => descriptor >= stdio.length)
  const all = [...stdio]
  for (let descriptor = stdio.length; descriptor <= Math.max(-1, ...inherited); descriptor++)
    all.push(inherited.includes(descriptor) ? nothing : 'ignore')
  return all
}

/** The descriptors of this process that were opened without O_CLOEXEC (proc_pid_fdinfo(5)). */
function inheritable(): number[] {
  return readdirSync('/proc/self/fdinfo')
    .map(Number)
    .filter((descriptor) => {
      const flags = /^flags:\s*([0-7]+)/m.exec(infoOf(descriptor))?.[1]
      return flags !== undefined && (Number.parseInt(flags, 8) & CLOSED_BY_EXEC) === 0
    })
}

/** Empty for the descriptor that was open only while the list was read. */
function infoOf(descriptor: number): string {
  try {
    return readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8')
  } catch {
    return ''
  }
}
