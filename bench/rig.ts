// What every benchmark needs: the programs that are compared, rounds in turn, and a table of the figures.
import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { Closing } from '../test/kit/closing.js'
import { closedPort } from '../test/kit/ports.js'

export interface Benchmark {
  /** What is measured and how, for readers of the results. */
  readonly about: string
  /** Head of its table. Default: that of relay and the earlier one. */
  readonly head?: Row
  run(options: Options, scope: Scope): Promise<readonly Row[]>
}

export interface Options {
  /** `short`: whether it works, in some seconds. `full`: with a journal that takes long to fill. */
  readonly size: 'short' | 'usual' | 'full'
  /** How many rounds count: `usual`, what `--rounds` says, or a single one. */
  readonly rounds: (usual: number) => Rounds
}

export interface Rounds {
  readonly count: number
  /** Whether one that does not count comes first. */
  readonly warmUp: boolean
}

/** Ends what a benchmark started, the last first. */
export class Scope extends Closing {
  folder(): string {
    const folder = mkdtempSync(path.join(tmpdir(), 'relay-bench-'))
    this.defer(() => rmSync(folder, { recursive: true, force: true }))
    return folder
  }
}

/** The same of this relay and of the earlier one. */
export interface Pair<T> {
  readonly relay: T
  readonly earlier: T | undefined
}

export const HERE = path.resolve()
/** The folder that RELAY_EARLIER names. */
export const EARLIER = process.env['RELAY_EARLIER'] || undefined
/** Cell of a row that has no figure of an earlier relay. */
const ALONE = EARLIER === undefined ? 'RELAY_EARLIER is not set' : 'not compared'

/** `make` gets the folder of a built relay. */
export async function pair<T>(make: (build: string) => Promise<T> | T): Promise<Pair<T>> {
  return { relay: await make(HERE), earlier: EARLIER === undefined ? undefined : await make(EARLIER) }
}

export type Env = Readonly<Record<string, string>>
export const SECRET = 'bench'

/** A built relay with a data folder of its own. */
export class Relay {
  readonly home: string
  readonly program: string
  readonly env: Env
  /** Where `serve` listens. */
  url = ''
  #server: ChildProcess | undefined

  constructor(scope: Scope, build: string, env: Env = {}) {
    this.home = scope.folder()
    const { bin }: { bin: { relay: string } } = JSON.parse(
      readFileSync(path.join(build, 'package.json'), 'utf8'),
    )
    this.program = path.resolve(build, bin.relay)
    if (!existsSync(this.program)) throw new Error(`${this.program} does not exist: build it first`)
    const own = { PATH: process.env['PATH'] ?? '', HOME: this.home, RELAY_HOME: this.home }
    // Retention removes nothing while something is measured.
    this.env = { ...own, RELAY_WEBHOOK_SECRET: SECRET, RELAY_KEEP_MAX: '1TiB', ...env }
    scope.defer(() => this.stop())
  }

  /** Runs a command to its end. @throws Error unless it succeeds. */
  async run(args: readonly string[], input = ''): Promise<{ readonly ms: number; readonly out: string }> {
    return run(process.execPath, [this.program, ...args], { env: this.env, input })
  }

  /** Starts `serve`, and resolves once it answers. Without output: to read it takes processor time. */
  async serve(...flags: readonly string[]): Promise<this> {
    const port = await closedPort()
    this.url = `http://127.0.0.1:${port}`
    await answering(this.url, this.#start(['serve', '--port', `${port}`, '--quiet', ...flags], 'ignore'))
    return this
  }

  /** Starts `serve --json`, and resolves with the lines that it prints, once it listens. */
  async serveAloud(...flags: readonly string[]): Promise<Interface> {
    const server = this.#start(['serve', '--port', '0', '--json', ...flags], ['ignore', 'pipe', 'ignore'])
    if (!server.stdout) throw new Error('unreachable: its output is a pipe')
    const lines = createInterface(server.stdout)
    const [first]: unknown[] = await Promise.race([once(lines, 'line'), once(server, 'exit')])
    const [, url] = /"url":"([^"]+)"/.exec(String(first)) ?? []
    if (url === undefined) throw new Error(`${server.spawnargs.join(' ')} says ${String(first)}`)
    this.url = url
    return lines
  }

  /** Starts another service, without output. */
  start(...args: readonly string[]): ChildProcess {
    return this.#start(args, 'ignore')
  }

  kill(signal: NodeJS.Signals): void {
    this.#server?.kill(signal)
  }

  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server) await end(server)
  }

  /** Anonymous memory of `serve` in MiB: resident memory would count the pages of the journal's file, too. */
  get memory(): number {
    const status = readFileSync(`/proc/${this.#server?.pid}/status`, 'utf8')
    return Number(/^RssAnon:\s+(\d+)/m.exec(status)?.[1]) / 1024
  }

  #start(args: readonly string[], stdio: StdioOptions): ChildProcess {
    const { program, env } = this
    return (this.#server = spawn(process.execPath, [program, ...args], { env, stdio }))
  }
}

/** Runs a program to its end. @throws Error unless it succeeds. */
export async function run(
  file: string,
  args: readonly string[],
  { env = {}, input = '' }: { readonly env?: Env; readonly input?: string } = {},
): Promise<{ readonly ms: number; readonly out: string }> {
  const begun = performance.now()
  const child = spawn(file, args, { env })
  let [out, err] = ['', '']
  child.stdout.on('data', (data) => (out += String(data)))
  child.stderr.on('data', (data) => (err += String(data)))
  child.stdin.end(input)
  const [code]: unknown[] = await once(child, 'close')
  if (code !== 0) throw new Error(`${[file, ...args].join(' ')} ended with ${String(code)}: ${err}`)
  return { ms: performance.now() - begun, out }
}

export async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

/** Resolves once a server answers. */
export async function answering(url: string, server: ChildProcess): Promise<void> {
  await until(`${server.spawnargs.join(' ')} answers`, async () => {
    if (server.exitCode !== null) throw new Error(`${server.spawnargs.join(' ')} ended`)
    return (await fetch(`${url}/health`).catch(() => undefined)) !== undefined
  })
}

/** Looks again every few milliseconds. @throws Error after a minute. */
export async function until(what: string, isSo: () => Promise<boolean> | boolean): Promise<void> {
  for (const begun = performance.now(); !(await isSo()); await sleep(5))
    if (performance.now() - begun > 60_000) throw new Error(`waited for a minute until ${what}`)
}

export type Figures = Readonly<Record<string, number>>

/** One line of the results: the cells below `HEAD`. */
export type Row = readonly string[]

const HEAD: Row = ['', 'relay', 'earlier', 'relay ÷ earlier', 'spread']

/**
 * Measures all sides once per round, in alternating order, so that other load on the machine affects all.
 * A first round that warms up does not count.
 */
export async function measure<T>(
  { count, warmUp }: Rounds,
  { relay, earlier }: Pair<T>,
  figures: (one: T) => Promise<Figures>,
): Promise<readonly Row[]> {
  const side = (run: () => Promise<Figures>) => ({ run, rounds: new Array<Figures>() })
  const own = side(() => figures(relay))
  const before = earlier === undefined ? undefined : side(() => figures(earlier))
  const sides = [own, before].filter((each) => each !== undefined)
  for (let round = warmUp ? -1 : 0; round < count; round++) {
    for (const each of round % 2 ? sides.toReversed() : sides) {
      const measured = await each.run()
      if (round >= 0) each.rounds.push(measured)
    }
  }
  return Object.keys(own.rounds[0] ?? {}).map((what) => {
    const values = (of: typeof own | undefined) => of?.rounds.map((round) => round[what] ?? Number.NaN)
    return row(what, values(own) ?? [], values(before))
  })
}

export function row(what: string, relay: readonly number[], earlier?: readonly number[]): Row {
  if (![...relay, ...(earlier ?? [])].every(Number.isFinite))
    return notMeasured(what, 'a round has no figure')
  const ratios = earlier?.map((value, round) => (relay[round] ?? Number.NaN) / value)
  const compared = ratios && [
    `${median(ratios).toFixed(2)} ×`,
    `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
  ]
  const own = amount(median(relay))
  return [what, own, earlier ? amount(median(earlier)) : ALONE, ...(compared ?? ['', ''])]
}

export function notMeasured(what: string, why: string): Row {
  return [what, `${NOT_MEASURED}${why}`, '', '', '']
}

const NOT_MEASURED = 'not measured: '

/** Whether there is something, and all of it was measured. */
export function isMeasured(rows: readonly Row[]): boolean {
  return rows.length > 0 && rows.every(([, figure]) => figure?.startsWith(NOT_MEASURED) === false)
}

/** The rows as an aligned Markdown table. */
export function table(rows: readonly Row[], head = HEAD): string {
  const widths = head.map((_, i) => Math.max(3, ...[head, ...rows].map((each) => each[i]?.length ?? 0)))
  const line = (cells: Row) => `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

/** What this share of the values is below. */
export function percentile(values: readonly number[], share: number): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length * share)] ?? Number.NaN
}

export const median = (values: readonly number[]): number => percentile(values, 0.5)

/** As people read it: 10,000. */
export function thousands(count: number): string {
  return count.toLocaleString('en')
}

export function amount(value: number): string {
  const digits = value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
