import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { Changes } from './changes.js'
import type { Env } from './folder.js'

export interface DaemonOptions {
  readonly env?: Env
  readonly cwd?: string
  readonly uid?: number | undefined
  readonly gid?: number | undefined
  /** Standard input. Default: empty. */
  readonly input?: string
  /** The signal that ends it when this process is gone. Default: SIGKILL. */
  readonly end?: 'SIGKILL' | 'SIGQUIT'
}

/**
 * A system program that runs until it is disposed of. It does not outlive this process, however that ends: a shell waits
 * for the end of a pipe from here, and then ends the program. Both are in sessions of their own, which Ctrl-C does not reach.
 */
export class Daemon implements AsyncDisposable {
  readonly #command: string
  readonly #child: ChildProcess
  readonly #lines: string[] = []
  readonly #changes = new Changes(() => this.#lines.join('\n'))
  #failure: Error | undefined

  constructor(command: string, args: readonly string[], options: DaemonOptions = {}) {
    const { input = '', end = 'SIGKILL', env, cwd, uid, gid } = options
    this.#command = command
    const child = spawn(command, [...args], {
      detached: true,
      stdio: ['pipe', 'ignore', 'pipe'],
      ...(env && { env }),
      ...(cwd !== undefined && { cwd }),
      ...(uid !== undefined && { uid }),
      ...(gid !== undefined && { gid }),
    })
    this.#child = child
    const { stdin, stderr } = child
    stdin.on('error', () => {}).end(input)
    createInterface(stderr).on('line', (line) => {
      this.#lines.push(line)
      this.#changes.changed()
    })
    child.once('error', (error) => this.#fail(error))
    child.once('exit', (code, signal) => this.#fail(new Error(`it ended with ${code ?? signal}`)))
    if (child.pid === undefined) return
    const keeper = leash(`kill -s ${end.slice(3)} ${child.pid}`)
    child.once('exit', () => keeper.release())
    child.unref()
    if (stderr instanceof Socket) stderr.unref()
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Waits for a line on standard error, and returns it. @throws Error with all that it printed, if it ends or is silent. */
  async says(pattern: RegExp): Promise<string> {
    const find = (): string | undefined => this.#lines.find((line) => pattern.test(line))
    const isOver = (): boolean => find() !== undefined || this.#failure !== undefined
    await this.#changes.until(isOver, `${this.#command} that says ${pattern}`)
    const line = find()
    if (line === undefined) this.check()
    return line ?? ''
  }

  /** @throws Error with all that it printed, if it has ended. */
  check(): void {
    if (this.#failure)
      throw new Error([`${this.#command}: ${this.#failure.message}`, ...this.#lines].join('\n'))
  }

  async stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.#failure) return
    const ended = once(this.#child, 'exit')
    this.#child.ref()
    this.#child.kill(signal)
    await ended
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  #fail(error: Error): void {
    this.#failure = error
    this.#changes.changed()
  }
}

/** Commands of a shell that run when this process is gone, however it went, or when they are let go. */
export interface Leash {
  /** Runs them now, while this process goes on. */
  letGo(): void
  /** They are not needed any more. */
  release(): void
}

export function leash(commands: string): Leash {
  const shell = spawn('sh', ['-c', `read -r _; ${commands}`], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  shell.unref()
  if (shell.stdin instanceof Socket) shell.stdin.unref()
  return { letGo: () => void shell.stdin.end(), release: () => void shell.kill('SIGKILL') }
}
