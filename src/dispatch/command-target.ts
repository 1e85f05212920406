import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { sleep } from '../base/abort.js'
import { describeConnectionError } from '../net/errors.js'
import type { Entry, Outcome, Summary } from '../journal/types.js'
import { jsonOf } from '../journal/payload.js'
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
 * Runs a command for each delivery: `/bin/sh -c`, in a process group of its own, with the payload's JSON on standard input. It ends when its shell ends; background processes of the shell continue, and their output is
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
  const shell = spawn('/bin/sh', ['-c', JOIN, command], {
    detached: true,
    env: commandEnvironment(env, entry),
    stdio: ['pipe', 'pipe', 'ignore'],
  })
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

export type Environment = Readonly<Record<string, string | undefined>>

/** Relay's own secrets, the paths of files with them, and addresses that may contain passwords. */
const SECRETS = /^RELAY_(?:(?:CLIENT|WEBHOOK)_SECRET|TOKEN_KEY|STORE|FORWARD$)/

/** Length limit of a value from a delivery, in bytes of UTF-8. */
const MAX_LENGTH = 1024

/** The environment of a command: relay's without its secrets, and the delivery's values, empty if it has none. */
export function commandEnvironment(
  env: Environment,
  { event, action, repo, deliveryId }: Pick<Summary, 'event' | 'action' | 'repo' | 'deliveryId'>,
): Record<string, string | undefined> {
  return {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !SECRETS.test(name))),
    RELAY_EVENT: clean(event),
    RELAY_ACTION: clean(action ?? ''),
    RELAY_REPO: clean(repo ?? ''),
    RELAY_DELIVERY: clean(deliveryId),
  }
}

/** Without control characters, cut at the end of a character. */
function clean(text: string): string {
  const room = new Uint8Array(MAX_LENGTH)
  const { written } = new TextEncoder().encodeInto(text.replace(/\p{Cc}/gu, ''), room)
  return Buffer.from(room.subarray(0, written)).toString()
}

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
