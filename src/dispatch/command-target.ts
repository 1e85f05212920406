import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { isSecretVariable } from '../base/secret-variables.js'
import { sleep, withTimeLimit } from '../base/wait.js'
import { describeConnectionError } from '../net/errors.js'
import type { Entry } from '../journal/types.js'
import { payloadBytes, readContent } from '../senders/content.js'
import { PrefixBuffer } from '../base/bytes.js'
import { type DeliveryResult, interruptedBy, noResponse, type OpenTarget, type Reply } from './target.js'

export interface CommandTargetOptions {
  readonly env: Environment
  /** Longest run of a command in milliseconds. */
  readonly limit: number
  /** Milliseconds between SIGTERM and SIGKILL. */
  readonly grace: number
  /** True: a command that runs does not keep the process alive. Default: false. */
  readonly background?: boolean | undefined
}

/**
 * Runs a command for each delivery: `/bin/sh -c`, in its own process group, with the payload's JSON on standard input.
 * It ends when its shell ends; background processes of the shell continue, and their output is ignored. At the time
 * limit, or when relay stops, the whole group gets SIGTERM and, after the grace period, SIGKILL. One that reached the limit has
 * failed. A command that cannot be started counts as an unreachable target.
 */
export function openCommandTarget(
  command: string,
  { env, limit, grace, background = false }: CommandTargetOptions,
): OpenTarget {
  return {
    deliver: (entry, attempt, { signal }) =>
      withTimeLimit(limit, signal, async (limited) => {
        if (signal.aborted) return interruptedBy(signal)
        const output = new PrefixBuffer()
        try {
          const shell = start(command, commandEnvironment(env, entry, attempt), entry, output)
          if (background) unref(shell)
          const exit = await exitOf(shell, limited, grace)
          await lastOutput(shell)
          const error = `still running after ${limit / 1000} s`
          const late: Exit = { outcome: 'refused', status: null, error }
          const result = {
            ...(exit ?? (signal.aborted ? interruptedBy(signal) : late)),
            answer: output.bytes,
          }
          return exit?.outcome === 'succeeded' && !output.isFull
            ? { ...result, reply: printed(output.bytes) }
            : result
        } catch (error) {
          return noResponse('unreachable', describeConnectionError(error))
        }
      }),
    async [Symbol.asyncDispose]() {},
  }
}

/** Output of a command, as an answer for the sender. */
function printed(body: Uint8Array): Reply {
  const isJson = readContent(body).kind === 'json'
  return { status: 200, headers: [['Content-Type', isJson ? 'application/json' : 'text/plain']], body }
}

const JOIN = 'exec /bin/sh -c "$0" 2>&1'

/**
 * Starts a shell that joins both outputs in order. Node reports some failures to start one turn later; there are no
 * streams then.
 */
function start(command: string, env: Environment, entry: Entry, output: PrefixBuffer): ChildProcess {
  const shell = spawn('/bin/sh', ['-c', JOIN, command], {
    detached: true,
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  shell.on('error', () => {})
  shell.stdout?.on('data', (chunk: Buffer) => output.add(chunk)).on('error', () => {})
  // A command need not read its input.
  shell.stdin?.on('error', () => {}).end(payloadBytes(entry.body))
  return shell
}

/** Lets the process end while the command runs. Its pipes are sockets. */
function unref(shell: ChildProcess): void {
  shell.unref()
  for (const pipe of [shell.stdin, shell.stdout]) if (pipe instanceof Socket) pipe.unref()
}

/** EX_TEMPFAIL of sysexits(3), with which mail filters and similar programs ask to be run again later. */
const TEMPORARY_FAILURE = 75

type Exit = Omit<DeliveryResult, 'answer'>

/**
 * Result of the shell's exit. Undefined if `signal` aborted first, after the process group was ended. A failed command, also
 * one that a signal ended, is not run again, since it may have done half of its work, unless it asks for that.
 * @throws Error of the system when it could not be started
 */
async function exitOf(shell: ChildProcess, signal: AbortSignal, grace: number): Promise<Exit | undefined> {
  try {
    const [code, by]: (number | string | null)[] = await once(shell, 'exit', { signal })
    if (code === 0) return { outcome: 'succeeded', status: code, error: null }
    if (typeof code !== 'number') return { outcome: 'refused', status: null, error: `ended by ${by}` }
    const outcome = code === TEMPORARY_FAILURE ? 'retry' : 'refused'
    return { outcome, status: code, error: `exit code ${code}` }
  } catch (error) {
    if (!signal.aborted || shell.pid === undefined) throw error
    await endGroup(shell.pid, grace)
    return undefined
  }
}

/** Wait for output that was written before the end, in milliseconds. */
const LAST_OUTPUT_MS = 200

async function lastOutput({ stdin, stdout }: ChildProcess): Promise<void> {
  if (stdout && !stdout.closed)
    await once(stdout, 'close', { signal: AbortSignal.timeout(LAST_OUTPUT_MS) }).catch(() => {})
  stdin?.destroy()
  stdout?.destroy()
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Longest value from a delivery, in bytes of UTF-8. */
const MAX_LENGTH = 1024

/** Environment of a command: relay's without its secrets, and the delivery's values, empty if it has none. */
function commandEnvironment(env: Environment, entry: Entry, attempt: number): Environment {
  return {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !isSecretVariable(name))),
    RELAY_EVENT: clean(entry.event),
    RELAY_ACTION: clean(entry.action ?? ''),
    RELAY_REPO: clean(entry.repo ?? ''),
    RELAY_REF: clean(entry.ref ?? ''),
    RELAY_NUMBER: entry.number === null ? '' : String(entry.number),
    RELAY_ATTEMPT: String(attempt),
    RELAY_DELIVERY: clean(entry.deliveryId),
    RELAY_SOURCE: clean(entry.provider),
    RELAY_QUERY: clean(entry.query ?? ''),
  }
}

/** Removes control characters, and cuts the text at the end of a character. */
function clean(text: string): string {
  const room = new Uint8Array(MAX_LENGTH)
  const { written } = new TextEncoder().encodeInto(text.replace(/\p{Cc}/gu, ''), room)
  return Buffer.from(room.subarray(0, written)).toString()
}

/** Interval of checking whether a group has ended, in milliseconds. */
const POLL_MS = 20

/**
 * Ends a group with SIGTERM, then SIGKILL after `grace` milliseconds. Resolves once no process runs any more, or
 * SIGKILL was sent.
 */
async function endGroup(group: number, grace: number): Promise<void> {
  signalGroup(group, 'SIGTERM')
  for (const until = performance.now() + grace; signalGroup(group, 0) && runs(group);) {
    if (performance.now() >= until) return void signalGroup(group, 'SIGKILL')
    await sleep(POLL_MS)
  }
}

/** False if there is no such group. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal)
  } catch {
    return false
  }
}

/**
 * True if a process of the group runs. A process that ended stays in the group while its parent is relay in a
 * container, so its state is checked. True without /proc.
 */
function runs(group: number): boolean {
  const stateOf = (pid: string): string => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      // The name before it is in parentheses, and may contain any character.
      const [state = '', , itsGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return Number(itsGroup) === group ? state : ''
    } catch {
      return ''
    }
  }
  try {
    const names = readdirSync('/proc')
    // A /proc that is empty, or belongs to other processes, is of no use.
    if (!names.includes(String(process.pid))) return true
    return names.some((name) => /^\d+$/.test(name) && /[^ZX]/.test(stateOf(name)))
  } catch {
    // There is no /proc, or too many files are open. The group must then be killed in any case.
    return true
  }
}
