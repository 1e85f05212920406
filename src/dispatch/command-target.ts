import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { describeConnectionError } from '../net/errors.js'
import { withoutInherited } from '../base/without-inherited.js'
import { type Entry, type Outcome } from '../journal/types.js'
import { jsonOf } from '../journal/payload.js'
import { commandEnvironment, type Environment } from './command-environment.js'
import { endGroup } from './process-group.js'
import { StartOf } from '../base/start-of.js'
import { type OpenTarget, type DeliveryResult, unanswered } from './target.js'
import { withTimeLimit } from '../base/time-limit.js'

/** EX_TEMPFAIL of sysexits(3), with which mail filters and similar programs ask to be run again later. */
const TEMPORARY_FAILURE = 75

/**
 * The outcome of a command's exit code. A failed command is not run again: it may have done half of its work, and a deploy must not run five
 * times because its last line failed. A command that asks for another run exits with 75.
 */
function exitOutcome(code: number): Outcome {
  if (code === 0) return 'succeeded'
  return code === TEMPORARY_FAILURE ? 'retry' : 'refused'
}

export interface CommandTargetOptions {
  readonly env: Environment
  /** Milliseconds a command may run. */
  readonly limit: number
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly grace: number
}

/** How long output that was written before the end may take to arrive. */
const LAST_OUTPUT_MS = 200

const STOPPED = 'relay was stopped'

const JOIN = 'exec /bin/sh -c "$0" 2>&1'

/**
 * Runs a command for each delivery: `/bin/sh -c`, in a process group of its own, with the payload's JSON on standard input and no
 * other open file of relay's. It ends when its shell ends; background processes of the shell continue, and their output is
 * ignored. At the time limit, or when relay stops, the whole group gets SIGTERM and, after the grace period, SIGKILL. A command
 * that cannot be started counts as a target that cannot be reached.
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

/**
 * The first shell only joins error output to standard output, which keeps the order of what is written to both. Node reports some
 * failures to start, such as too many open files, one turn later by `error`; there are no streams then.
 */
function start(command: string, entry: Entry, env: Environment, output: StartOf): ChildProcess {
  const shell = withoutInherited(
    { command: '/bin/sh', args: ['-c', JOIN, command], stdio: ['pipe', 'pipe', 'ignore'] },
    ({ command: program, args, stdio }) =>
      spawn(program, args, { detached: true, env: commandEnvironment(env, entry), stdio: [...stdio] }),
  )
  shell.on('error', () => {})
  shell.stdout?.on('data', (chunk: Buffer) => output.add(chunk)).on('error', () => {})
  // A command need not read its input.
  shell.stdin?.on('error', () => {}).end(jsonOf(entry) ?? entry.body)
  return shell
}

/**
 * The result of the shell's exit; undefined when `signal` aborted first, and its process group was ended.
 * @throws Error of the system when it could not be started.
 */
async function exitOf(
  shell: ChildProcess,
  signal: AbortSignal,
  grace: number,
): Promise<Omit<DeliveryResult, 'answer'> | undefined> {
  try {
    const [code, by]: (number | string | null)[] = await once(shell, 'exit', { signal })
    if (typeof code === 'number') {
      return { outcome: exitOutcome(code), status: code, error: code === 0 ? null : `exit code ${code}` }
    }
    // It crashed or was killed, so its outcome is unknown and it runs again.
    return { outcome: 'retry', status: null, error: `ended by ${by}` }
  } catch (error) {
    if (!signal.aborted || shell.pid === undefined) throw error
    await endGroup(shell.pid, grace)
    return undefined
  }
}

async function lastOutput({ stdin, stdout }: ChildProcess): Promise<void> {
  if (!stdin || !stdout) return
  const closed = (limited: AbortSignal) => once(stdout, 'close', { signal: limited }).catch(() => {})
  if (!stdout.closed) await withTimeLimit(LAST_OUTPUT_MS, new AbortController().signal, closed)
  stdin.destroy()
  stdout.destroy()
}
