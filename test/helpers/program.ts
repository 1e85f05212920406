import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import path from 'node:path'
import { emptyFolder } from './context.js'

const PROGRAM = path.resolve('dist/bin/relay.js')
const LEASH = path.resolve('test/helpers/leash.mjs')

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

/**
 * The built program as a real process, in an empty folder and with nothing of this environment but PATH; by way of
 * `wrapper`, a command that takes another (`strace`, `sh -c`), where one is given. It does not outlive the test process.
 */
export class Program implements AsyncDisposable {
  /** The folder it works in. */
  readonly cwd = emptyFolder()
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  #out = ''
  #err = ''
  #done = false
  readonly #objects: Record<string, unknown>[] = []
  readonly #waiting = new Set<() => void>()

  constructor(
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    wrapper: readonly string[] = [],
  ) {
    const [command = '', ...rest] = [...wrapper, process.execPath, '--import', LEASH, PROGRAM, ...args]
    this.child = spawn(command, rest, {
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      cwd: this.cwd,
      env: { PATH: process.env['PATH'], HOME: emptyFolder(), RELAY_HOME: emptyFolder(), ...env },
    })
    const { stdout, stderr } = this.child
    if (!stdout || !stderr) throw new Error('unreachable: they are pipes')
    stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#err += text
      this.#wake()
    })
    stdout.setEncoding('utf8').on('data', (text: string) => (this.#out += text))
    createInterface(stdout).on('line', (line) => this.#take(line))
    this.ended = once(this.child, 'close').then(([code, signal]) => {
      this.#done = true
      this.#wake()
      return { code, signal, out: this.#out, err: this.#err }
    })
  }

  get pid(): number {
    return this.child.pid ?? 0
  }

  /** What was on stderr so far. */
  get err(): string {
    return this.#err
  }

  /** The first object on stdout with these fields, now or to come. Fails when the program ends without it. */
  async object(fields: Readonly<Record<string, unknown>>): Promise<Record<string, unknown>> {
    return this.#until(() => this.#objects.find((object) => has(object, fields)), JSON.stringify(fields))
  }

  /** Waits until so many objects with these fields were on stdout. Fails when the program ends before. */
  async objects(fields: Readonly<Record<string, unknown>>, count: number): Promise<void> {
    let seen = 0
    let read = 0
    const enough = (): true | undefined => {
      for (; read < this.#objects.length; read++) if (has(this.#objects[read], fields)) seen++
      return seen >= count || undefined
    }
    await this.#until(enough, `${count} of ${JSON.stringify(fields)}`)
  }

  /** Waits until this was said on stderr. Fails when the program ends without saying it. */
  async says(text: string): Promise<void> {
    await this.#until(() => this.#err.includes(text) || undefined, text)
  }

  /** The address of a `serve --json`, once it listens. */
  async url(): Promise<string> {
    return (await this.listening()).url
  }

  async listening(): Promise<{ readonly url: string; readonly sandbox: string }> {
    const { url, sandbox } = await this.object({ type: 'listening' })
    return { url: String(url), sandbox: String(sandbox) }
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal)
    return this.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What a wrapper has started goes this way.
    this.child.stdio[3]?.destroy()
    await this.stop('SIGKILL')
  }

  async #until<Found>(find: () => Found | undefined, wanted: string): Promise<Found> {
    for (;;) {
      const found = find()
      if (found !== undefined) return found
      if (this.#done) throw new Error(`ended without ${wanted}:\n${this.#err}`)
      await new Promise<void>((resolve) => this.#waiting.add(resolve))
    }
  }

  #take(line: string): void {
    // Not the first line of a fixture.
    if (!/^\{.*\}$/.test(line)) return
    const object: Record<string, unknown> = JSON.parse(line)
    this.#objects.push(object)
    this.#wake()
  }

  #wake(): void {
    for (const resume of this.#waiting) resume()
    this.#waiting.clear()
  }
}

function has(
  object: Record<string, unknown> | undefined,
  fields: Readonly<Record<string, unknown>>,
): boolean {
  return object !== undefined && Object.entries(fields).every(([name, value]) => object[name] === value)
}

/** Runs the built program to its end. */
export async function relay(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  await using program = new Program(args, env)
  return await program.ended
}
