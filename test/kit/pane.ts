import { execFile, execFileSync } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { vi } from 'vitest'
import { leash, type Leash } from './daemon.js'
import { emptyFolder, type Env } from './folder.js'
import { LIMIT_MS } from './limit.js'

export interface PaneOptions {
  readonly width: number
  readonly height: number
  readonly cwd?: string
  readonly env?: Env
}

const RELAY = `"${process.execPath}" "${path.resolve('dist/bin/relay.cjs')}"`
const DONE = 'done'

/** A terminal of so many columns and rows, in tmux, in which the built program runs as `relay`. */
export class Pane implements AsyncDisposable {
  /** A server of its own for each pane, which takes its environment from its first client. */
  readonly #socket = path.join(emptyFolder(), 'tmux')
  readonly #leash: Leash

  /** Runs commands of a shell, such as `relay log; relay show last`. */
  constructor(script: string, { width, height, cwd = process.cwd(), env = {} }: PaneOptions) {
    const done = `tmux -S ${this.#socket} wait-for -S ${DONE}`
    const shell = `relay() { ${RELAY} "$@"; }; ${script}; ${done}; read -r _`
    const home = emptyFolder()
    const all = { PATH: process.env['PATH'] ?? '', HOME: home, LC_ALL: 'C.UTF-8', TZ: 'UTC', ...env }
    const settings = Object.entries(all).map(([name, value]) => `${name}=${value ?? ''}`)
    const size = ['-x', String(width), '-y', String(height)]
    // tmux itself gets nothing of this environment, which would reach the program.
    const session = ['-S', this.#socket, '-f', '/dev/null', 'new-session', '-d', ...size, '-c', cwd]
    execFileSync('env', ['-i', ...settings, 'tmux', ...session, 'sh', '-c', shell])
    // By its number: the socket goes with the folder of the run.
    this.#leash = leash(`kill ${this.#tmux('display-message', '-p', '#{pid}').trim()}`)
  }

  /** Waits until the script has ended. */
  async ended(): Promise<void> {
    await promisify(execFile)('tmux', ['-S', this.#socket, 'wait-for', DONE])
  }

  press(...keys: readonly string[]): void {
    this.#tmux('send-keys', ...keys)
  }

  /** What the terminal shows now, without empty lines at its end. */
  text(): string {
    return `${this.#tmux('capture-pane', '-p', '-S', '-').trimEnd()}\n`
  }

  /** The same, with the lines that the terminal has broken in one piece. */
  unbroken(): string {
    const lines = this.#tmux('capture-pane', '-p', '-J', '-S', '-').split('\n')
    return `${lines
      .map((line) => line.trimEnd())
      .join('\n')
      .trimEnd()}\n`
  }

  /** Waits until the terminal shows this. */
  async shows(pattern: RegExp): Promise<void> {
    await vi.waitFor(
      () => {
        const text = this.text()
        if (!pattern.test(text)) throw new Error(`${pattern} is not in:\n${text}`)
      },
      { timeout: LIMIT_MS, interval: 50 },
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leash.release()
    await promisify(execFile)('tmux', ['-S', this.#socket, 'kill-server'])
  }

  #tmux(...args: readonly string[]): string {
    return execFileSync('tmux', ['-S', this.#socket, ...args], { encoding: 'utf8' })
  }
}
