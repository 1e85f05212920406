import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { Readable } from 'node:stream'
import type { Context } from '../../src/cli/context.js'
import { emptyFolder, type Env } from './folder.js'
import { LIMIT_MS } from './limit.js'
import { leaveOut } from './needs.js'

export type Seams = NonNullable<Context['seams']>

/** Whether tests that inject nothing run the built program instead of the sources in this process. */
export const BUILT = Boolean(process.env['RELAY_TEST_BUILT'])
export const PROGRAM = path.resolve('dist/bin/relay.cjs')
export const LEASH = path.resolve('test/kit/leash.mjs')

/** What a command printed, and its exit code. */
export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** How a command ends that fails, and prints nothing but why. */
export function fails(code: number, message: string): Ran {
  return { code, out: '', err: `error: ${message}\n` }
}

/** How a command ends that succeeds, and prints nothing but its result. */
export function prints(out: string): Ran {
  return { code: 0, out, err: '' }
}

/** What a command printed, and how it ended: `code` is null if a signal ended it. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

/** A terminal's size, and which streams are connected to it. Default: all three, 120 columns. */
export interface Terminal {
  readonly columns?: number
  readonly rows?: number
  readonly streams?: readonly ('stdin' | 'stdout' | 'stderr')[]
}

export interface RunContext {
  /** Replaces parts of the environment, which otherwise has PATH and empty folders as HOME and RELAY_HOME. */
  readonly env: Env
  /** Default: an empty folder. */
  readonly cwd: string
  /** The folder with the user's own settings; its last part is `relay`. Default: an empty one. */
  readonly configFolder: string
  /** Standard input. Default: empty. */
  readonly stdin: string | Uint8Array | Readable
  /** Interrupts the command as Ctrl-C does. */
  readonly signal: AbortSignal
  /** Only in this process. */
  readonly terminal: Terminal
  /** Only in this process. */
  readonly seams: Seams
  /** Runs the built program as a process. Default: as RELAY_TEST_BUILT says. */
  readonly built: boolean
}

export interface StartOptions extends Partial<RunContext> {
  /** A command that starts the program: `['strace', …]`, `['sh', '-c', …]`. Only with the built program. */
  readonly wrapper?: readonly string[]
}

/** Runs a command to its end: in this process, or the built program. */
export async function run(argv: readonly string[], over: Partial<RunContext> = {}): Promise<Ran> {
  await using running = start(argv, over)
  const { code, signal, out, err } = await running.ended
  if (code === null) throw new Error(`relay ${argv.join(' ')} was ended by ${signal}:\n${err}`)
  return { code, out, err }
}

/** Starts a command. */
export function start(argv: readonly string[], options: StartOptions = {}): Running {
  const { built = BUILT || options.wrapper !== undefined, terminal, seams } = options
  if (!built) return new InProcess(argv, options)
  if (terminal || seams) leaveOut('it injects a terminal, a clock, a limit, chance or a storage fault')
  return new AsProcess(argv, options)
}

/** A running command. Disposing of it ends it. */
export abstract class Running implements AsyncDisposable {
  /** The process; in this process, its own. */
  abstract readonly pid: number
  /** The built program's process. @throws Error in this process. */
  abstract readonly child: ChildProcess
  abstract readonly ended: Promise<Ended>
  readonly cwd: string
  /** What was on standard output and standard error so far. */
  out = ''
  err = ''
  #isDone = false
  #line = ''
  readonly #objects: Record<string, unknown>[] = []
  readonly #waiting = new Set<() => void>()

  constructor({ cwd = emptyFolder() }: StartOptions) {
    this.cwd = cwd
  }

  abstract [Symbol.asyncDispose](): Promise<void>

  /** Sends a signal. In this process: SIGINT, SIGTERM, or SIGHUP. */
  abstract kill(signal: NodeJS.Signals): void

  /** Sends a signal, SIGTERM by default, and waits for the end. */
  stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> {
    this.kill(signal)
    return this.ended
  }

  /** The first object on standard output with these fields, now or to come. @throws Error when the command ends without it. */
  object(fields: object): Promise<Record<string, unknown>> {
    return this.#until(() => this.#objects.find((object) => has(object, fields)), JSON.stringify(fields))
  }

  /** Waits for so many of them. @throws Error when the command ends before. */
  objects(fields: object, count: number): Promise<Record<string, unknown>[]> {
    // Each object is looked at once: there may be ten thousand.
    const found: Record<string, unknown>[] = []
    let read = 0
    const enough = (): Record<string, unknown>[] | undefined => {
      for (; read < this.#objects.length; read++) {
        const object = this.#objects[read]
        if (object && has(object, fields)) found.push(object)
      }
      return found.length >= count ? found : undefined
    }
    return this.#until(enough, `${count} of ${JSON.stringify(fields)}`)
  }

  /** Waits until this is on standard error. @throws Error when the command ends without it. */
  async says(text: string | RegExp): Promise<void> {
    await this.#until(() => contains(this.err, text) || undefined, String(text))
  }

  /** Waits until this is on standard output. @throws Error when the command ends without it. */
  async prints(text: string | RegExp): Promise<void> {
    await this.#until(() => contains(this.out, text) || undefined, String(text))
  }

  /** The address of a `serve --json`, once it listens. */
  async url(): Promise<string> {
    return (await this.listening()).url
  }

  async listening(): Promise<{ readonly url: string; readonly sandbox: string }> {
    const { url, sandbox } = await this.object({ type: 'listening' })
    return { url: String(url), sandbox: String(sandbox) }
  }

  protected takeOut(text: string): void {
    this.out += text
    const lines = (this.#line + text).split('\n')
    this.#line = lines.pop() ?? ''
    // Not the first line of a fixture.
    for (const line of lines) if (/^\{.*\}$/.test(line)) this.#objects.push(JSON.parse(line))
    this.#wake()
  }

  protected takeErr(text: string): void {
    this.err += text
    this.#wake()
  }

  /** It has ended, and prints no more. */
  protected end(code: number | null, signal: NodeJS.Signals | null): Ended {
    this.#isDone = true
    this.#wake()
    return { code, signal, out: this.out, err: this.err }
  }

  #wake(): void {
    for (const resume of this.#waiting) resume()
    this.#waiting.clear()
  }

  async #until<Found>(find: () => Found | undefined, wanted: string): Promise<Found> {
    let isLate = false
    // Before the test itself is ended, which would not say what the program printed.
    const timer = setTimeout(() => {
      isLate = true
      this.#wake()
    }, 4 * LIMIT_MS)
    try {
      for (;;) {
        const found = find()
        if (found !== undefined) return found
        if (this.#isDone || isLate)
          throw new Error(`${isLate ? 'runs' : 'ended'} without ${wanted}:\n${this.out}\n${this.err}`)
        await new Promise<void>((resolve) => this.#waiting.add(resolve))
      }
    } finally {
      clearTimeout(timer)
    }
  }
}

/** The built program, with nothing of this environment but PATH. It does not outlive the test process. */
class AsProcess extends Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>

  constructor(argv: readonly string[], options: StartOptions) {
    super(options)
    const { wrapper = [], stdin, signal } = options
    const [command = '', ...rest] = [...wrapper, process.execPath, '--import', LEASH, PROGRAM, ...argv]
    // The fourth pipe is the leash's.
    const stdio = ['pipe', 'pipe', 'pipe', 'pipe'] as const
    this.child = spawn(command, rest, { stdio: [...stdio], cwd: this.cwd, env: environment(options) })
    const { stdin: input, stdout, stderr } = this.child
    if (!input || !stdout || !stderr) throw new Error('unreachable: they are pipes')
    stdout.setEncoding('utf8').on('data', (text: string) => this.takeOut(text))
    stderr.setEncoding('utf8').on('data', (text: string) => this.takeErr(text))
    // A command need not read what it is given.
    input.on('error', () => {})
    if (stdin instanceof Readable) stdin.pipe(input)
    else if (stdin !== undefined || !options.wrapper) input.end(stdin)
    const interrupt = (): void => this.kill('SIGINT')
    if (signal?.aborted) interrupt()
    signal?.addEventListener('abort', interrupt, { once: true })
    this.ended = once(this.child, 'close').then(([code, ending]) => {
      signal?.removeEventListener('abort', interrupt)
      return this.end(code, ending)
    })
  }

  get pid(): number {
    return this.child.pid ?? 0
  }

  kill(signal: NodeJS.Signals): void {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What a wrapper has started goes this way.
    this.child.stdio[3]?.destroy()
    await this.stop('SIGKILL')
  }
}

/** The command's sources, run in this process. */
class InProcess extends Running {
  readonly pid = process.pid
  readonly ended: Promise<Ended>
  readonly #controller = new AbortController()
  readonly #hangUp = new Set<() => void>()

  constructor(argv: readonly string[], options: StartOptions) {
    super(options)
    this.ended = this.#run(argv, options).then((code) => this.end(code, null))
  }

  get child(): ChildProcess {
    throw new Error('the command runs in this process: start it with { built: true }')
  }

  kill(signal: NodeJS.Signals): void {
    if (signal === 'SIGHUP') for (const listener of this.#hangUp) listener()
    else if (signal === 'SIGINT' || signal === 'SIGTERM') this.#controller.abort()
    else throw new Error(`the command runs in this process: start it with { built: true } for ${signal}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #run(argv: readonly string[], options: StartOptions): Promise<number> {
    const [{ main }, { RelayError }] = await Promise.all([
      import('../../src/cli/main.js'),
      import('../../src/base/errors.js'),
    ])
    const { stdin = '', terminal, configFolder = emptyFolder(), signal, seams } = options
    const interrupted = new AbortController()
    const interrupt = (): void => interrupted.abort(new RelayError('cancelled', 'Interrupted'))
    for (const each of [signal, this.#controller.signal]) {
      if (each?.aborted) interrupt()
      each?.addEventListener('abort', interrupt, { once: true })
    }
    const streams = terminal ? (terminal.streams ?? ['stdin', 'stdout', 'stderr']) : []
    const { columns = 120, rows = 40 } = terminal ?? {}
    const output = (name: 'stdout' | 'stderr', take: (text: string) => void): Context['stdout'] => ({
      ...(streams.includes(name) && { isTTY: true, columns, rows }),
      write: (text) => take(typeof text === 'string' ? text : Buffer.from(text).toString()),
    })
    const input =
      stdin instanceof Readable ? stdin : Readable.from(stdin.length > 0 ? [Buffer.from(stdin)] : [])
    return main(argv, {
      env: environment(options),
      cwd: this.cwd,
      configFolder,
      stdin: streams.includes('stdin') ? Object.assign(input, { isTTY: true }) : input,
      stdout: output('stdout', (text) => this.takeOut(text)),
      stderr: output('stderr', (text) => this.takeErr(text)),
      signal: interrupted.signal,
      endAtSignal: () => {},
      ...(seams && { seams }),
      onHangup: (listener) => {
        this.#hangUp.add(listener)
        return () => void this.#hangUp.delete(listener)
      },
      onKey: () => undefined,
      continueWithoutOutput: () => {},
      onConnectionError: () => () => {},
    })
  }
}

function environment({ env, configFolder }: StartOptions): Record<string, string | undefined> {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: emptyFolder(),
    RELAY_HOME: emptyFolder(),
    ...(configFolder !== undefined && { XDG_CONFIG_HOME: path.dirname(configFolder) }),
    ...env,
  }
}

function contains(text: string, wanted: string | RegExp): boolean {
  return typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)
}

function has(object: Record<string, unknown>, fields: object): boolean {
  return Object.entries(fields).every(([name, value]) => object[name] === value)
}
