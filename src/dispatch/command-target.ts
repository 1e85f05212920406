import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import type { Entry } from '../journal/delivery.js'
import { commandEnvironment, type Environment } from './command-environment.js'
import { describeConnectionError } from '../base/connection-error.js'
import { exitOutcome } from './policy.js'
import { endGroup } from './process-group.js'
import { StartOf } from './start-of.js'
import { type OpenTarget, type Result, unanswered } from './target.js'
import { withTimeLimit } from './time-limit.js'

export interface CommandTargetOptions {
  readonly env: Environment
  /** Milliseconds a command may run. */
  readonly limit: number
  /** Milliseconds between asking a command to end and ending it. */
  readonly grace: number
}

type Shell = ChildProcessByStdio<Writable, Readable, null>

/** How long output that was written before the end may take to arrive. Milliseconds. */
const LAST_OUTPUT = 200

const STOPPED = 'relay was stopped'

/**
 * Runs a command for each delivery: `/bin/sh -c`, in a process group of its own, the payload on standard input. It ends
 * when its shell does; what that has left running in the background goes on, unheard. At the time limit, or when relay
 * stops, the whole group is asked to end (SIGTERM) and, after the grace, made to (SIGKILL).
 */
export function openCommandTarget(command: string, options: CommandTargetOptions): OpenTarget {
  const { env, limit, grace } = options
  return {
    deliver: (entry, _attempt, { signal }) =>
      withTimeLimit(limit, signal, async (limited) => {
        if (signal.aborted) return unanswered('killed', STOPPED)
        const output = new StartOf()
        try {
          const shell = start(command, entry, env, output)
          const exit = await exitOf(shell, limited, grace)
          await lastOutput(shell)
          if (exit) return { ...exit, answer: output.bytes }
        } catch (error) {
          return unanswered('unreachable', describeConnectionError(error))
        }
        const cut = signal.aborted
          ? unanswered('killed', STOPPED)
          : unanswered('timed out', `still running after ${limit / 1000} s`)
        return { ...cut, answer: output.bytes }
      }),
    async [Symbol.asyncDispose]() {},
  }
}

/** The first shell only joins error output to standard output, which keeps the order of what is written to both. */
function start(command: string, entry: Entry, env: Environment, output: StartOf): Shell {
  const shell = spawn('/bin/sh', ['-c', 'exec /bin/sh -c "$0" 2>&1', command], {
    detached: true,
    env: commandEnvironment(env, entry),
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  shell.stdout.on('data', (chunk: Buffer) => output.add(chunk)).on('error', () => {})
  // A command need not read its input.
  shell.stdin.on('error', () => {}).end(entry.body)
  return shell
}

/**
 * What the shell's end came to; undefined when `signal` came first, and its process group was ended.
 * @throws Error of the system when it could not be started.
 */
async function exitOf(
  shell: Shell,
  signal: AbortSignal,
  grace: number,
): Promise<Omit<Result, 'answer'> | undefined> {
  try {
    const [code, by]: (number | string | null)[] = await once(shell, 'exit', { signal })
    if (typeof code === 'number') {
      return { outcome: exitOutcome(code), status: code, error: code === 0 ? null : `exit code ${code}` }
    }
    // It did not say how it went, so that another try is due: someone ended it, or it crashed.
    return { outcome: 'retry', status: null, error: `ended by ${by}` }
  } catch (error) {
    if (!signal.aborted || shell.pid === undefined) throw error
    await endGroup(shell.pid, grace)
    return undefined
  }
}

async function lastOutput({ stdin, stdout }: Shell): Promise<void> {
  const closed = (limited: AbortSignal) => once(stdout, 'close', { signal: limited }).catch(() => {})
  if (!stdout.closed) await withTimeLimit(LAST_OUTPUT, new AbortController().signal, closed)
  stdin.destroy()
  stdout.destroy()
}
