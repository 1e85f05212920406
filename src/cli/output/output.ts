import { once } from 'node:events'
import { inspect } from 'node:util'
import type { RelayError } from '../../base/errors.js'
import type { Log } from '../../base/log.js'
import { printable, printableJson, printableText } from '../../base/text.js'
import type { Context, TextStream } from '../context.js'
import { dim, join, type Line, red, t, textOf, yellow } from './text.js'
import { timeOfDay } from './time.js'

export type ColorMode = 'auto' | 'always' | 'never'
type Fields = Readonly<Record<string, unknown>>

export interface OutputOptions {
  readonly color?: ColorMode | undefined
  /** Without info and debug messages. */
  readonly quiet?: boolean | undefined
  /** With debug messages. */
  readonly verbose?: boolean | undefined
  /** Whether a failure is an object. */
  readonly json?: boolean | undefined
  /** Whether messages are JSON. Default: false. */
  readonly jsonLog?: boolean | undefined
}

/** A log for programs: each message is one JSON object on a line of standard error. */
export interface JsonLog extends Log {
  /** A message with what it is about; a `time` of its own is left out. */
  event(level: keyof Log, message: string, fields: Fields): void
}

/** Under the text of a line that begins with the time of day. */
export const TIMED_INDENT = 10

/**
 * Results on stdout, messages on stderr. Every method escapes what could rewrite a terminal's display, since text may come
 * from outside. Only `exactly` writes raw bytes, and only where stdout is no terminal.
 */
export class Output {
  /** Whether results are for a person: standard output is a terminal. */
  readonly isTerminal: boolean
  /** Whether `say` is silent, so that callers can skip the work for it. */
  readonly quiet: boolean
  readonly log: Log
  /** The same log with the time of day before each line, for a service. */
  readonly timedLog: Log
  /** The log where messages are JSON; undefined where they are text. */
  readonly jsonLog: JsonLog | undefined
  readonly #context: Pick<Context, 'stdout' | 'stderr' | 'env'>
  readonly #options: OutputOptions
  readonly #colors: { readonly results: boolean; readonly messages: boolean }
  /** A counter stands on the last line of the terminal. */
  #isCounting = false

  constructor(context: Pick<Context, 'stdout' | 'stderr' | 'env'>, options: OutputOptions = {}) {
    const { stdout, stderr, env } = context
    const { color, quiet, jsonLog } = options
    this.#context = context
    this.#options = options
    this.#colors = { results: wantsColor(stdout, env, color), messages: wantsColor(stderr, env, color) }
    this.isTerminal = stdout.isTTY === true
    this.quiet = quiet === true
    this.jsonLog = jsonLog ? this.#createJsonLog() : undefined
    this.log = this.jsonLog ?? this.#createLog(() => '')
    this.timedLog = this.jsonLog ?? this.#createLog(() => t`${dim(timeOfDay(Date.now()))}  `, TIMED_INDENT)
  }

  /** The same output, with messages as JSON or as text: a settings file can say so, too. */
  withLogFormat(format: 'text' | 'json' = 'text'): Output {
    return new Output(this.#context, { ...this.#options, jsonLog: format === 'json' })
  }

  /** The columns of a line of a result; no limit where it is no terminal. */
  get width(): number {
    return columnsOf(this.#context.stdout)
  }

  /** The same of a message. */
  get messageWidth(): number {
    return columnsOf(this.#context.stderr)
  }

  /** A line of a result. On a terminal it is broken at spaces, with the further lines indented by so many columns. */
  result(line: Line, indent?: number): void {
    this.#write(this.#rendered(line, indent))
  }

  /** The lines of a long result; on a terminal that is too small for them in a pager. */
  async pages(lines: readonly Line[]): Promise<void> {
    const { stdout, env } = this.#context
    const { width } = this
    const broken = lines.flatMap((line) => textOf(line).wrap(width))
    const height = broken.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.width / width)), 0)
    const text = broken.map((line) => `${line.render(this.#colors.results)}\n`).join('')
    const isLong = this.isTerminal && stdout.rows !== undefined && height >= stdout.rows
    if (!isLong || !(await showInPager(text, env))) this.#write(text)
  }

  /** A result byte for byte, with nothing added. On a terminal it is escaped, except line feeds and tabs. */
  exactly(bytes: string | Uint8Array): void {
    this.#write(this.isTerminal ? printableText(Buffer.from(bytes).toString()) : bytes)
  }

  /** A result for a program: one JSON object on a line, marked `"v":1`. */
  object(value: object): void {
    this.#write(jsonLine(value))
  }

  /** A line of a message, broken like a result; silent under `--quiet`. */
  say(line: Line, indent?: number): void {
    if (!this.quiet) this.#message(line, indent)
  }

  /**
   * A count of long work, such as `120/10000`: only on a terminal, and not under `--quiet`. The next count replaces it, any other output and
   * undefined remove it.
   */
  count(text: string | undefined): void {
    const { stderr } = this.#context
    if (stderr.isTTY !== true || this.quiet || this.jsonLog) return
    this.#endCount()
    if (text === undefined) return
    stderr.write(
      textOf(text)
        .cut(this.messageWidth - 1)
        .toString(),
    )
    this.#isCounting = true
  }

  /** A failure that ends the command, as an object where programs read it. */
  failure(error: RelayError): void {
    const { message, kind, cause = error } = error
    const object = { type: 'error', code: kind, error: message }
    if (this.jsonLog) this.jsonLog.event('error', message, { ...object, ...this.#causeField(cause) })
    else if (this.#options.json) this.#writeError(jsonLine(object))
    else this.log.error(message, cause)
  }

  #rendered(line: Line, indent?: number): string {
    const lines = textOf(line).wrap(this.width, indent)
    return lines.map((each) => `${each.render(this.#colors.results)}\n`).join('')
  }

  #message(line: Line, indent?: number): void {
    if (this.jsonLog) return this.jsonLog.info(textOf(line).toString())
    const lines = textOf(line).wrap(this.messageWidth, indent)
    for (const each of lines) this.#writeError(`${each.render(this.#colors.messages)}\n`)
  }

  #write(text: string | Uint8Array): void {
    this.#endCount()
    this.#context.stdout.write(text)
  }

  #writeError(text: string): void {
    this.#endCount()
    this.#context.stderr.write(text)
  }

  #endCount(): void {
    if (this.#isCounting) this.#context.stderr.write('\r\u001b[K')
    this.#isCounting = false
  }

  #createLog(start: () => Line, indent?: number): Log {
    const { verbose } = this.#options
    const write = (...parts: readonly Line[]): void => this.#message(join([start(), ...parts]), indent)
    return {
      debug: (text) => {
        if (verbose && !this.quiet) write(dim(text))
      },
      info: (text) => {
        if (!this.quiet) write(text)
      },
      warn: (text) => write(yellow('warning:'), ' ', text),
      error: (text, cause) => {
        write(red('error:'), ' ', text)
        if (this.#isDebugging && cause !== undefined)
          for (const line of inspect(cause).split('\n')) this.#message(line)
      },
    }
  }

  #createJsonLog(): JsonLog {
    const event: JsonLog['event'] = (level, message, fields) => {
      if (this.quiet && level === 'info') return
      const { time: _, ...about } = fields
      const time = new Date().toISOString()
      this.#writeError(jsonLine({ time, level, message: printable(message), ...about }))
    }
    return {
      event,
      debug: (message) => {
        if (this.#options.verbose && !this.quiet) event('debug', message, {})
      },
      info: (message) => event('info', message, {}),
      warn: (message) => event('warn', message, {}),
      error: (message, cause) => event('error', message, this.#causeField(cause)),
    }
  }

  #causeField(cause: unknown): Fields {
    return this.#isDebugging && cause !== undefined ? { cause: inspect(cause) } : {}
  }

  /** Whether an error's cause is printed, with its stack. */
  get #isDebugging(): boolean {
    return Boolean(this.#context.env['RELAY_DEBUG'])
  }
}

/** The object on one line, marked `"v":1`; what could rewrite a terminal's display is escaped, which is the same JSON. */
function jsonLine(value: object): string {
  return `${printableJson(JSON.stringify({ v: 1, ...value }))}\n`
}

/** A terminal's columns; elsewhere lines are not broken. */
function columnsOf({ isTTY, columns }: TextStream): number {
  return isTTY === true && columns ? columns : Infinity
}

/** `--color` decides, then NO_COLOR and FORCE_COLOR when not empty, then whether the stream is a terminal. */
function wantsColor(stream: TextStream, env: Context['env'], mode: ColorMode = 'auto'): boolean {
  if (mode !== 'auto') return mode === 'always'
  if (env['NO_COLOR']) return false
  if (env['FORCE_COLOR']) return env['FORCE_COLOR'] !== '0'
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}

/** What a shell answers for a program that is not there. */
const NOT_FOUND = 127

/**
 * Shows text in the pager that PAGER names, `less` by default, and resolves when the reader leaves it. False when there is none:
 * PAGER is empty or `cat`, or names no program.
 */
async function showInPager(text: string, env: Context['env']): Promise<boolean> {
  const pager = env['PAGER'] ?? 'less'
  if (pager === '' || pager === 'cat') return false
  const { spawn } = await import('node:child_process')
  const child = spawn('/bin/sh', ['-c', pager], {
    stdio: ['pipe', 1, 2],
    // As git does: F leaves at once what fits on the screen, R shows colours, X leaves the text there afterwards.
    env: { LESS: 'FRX', ...env },
  })
  // A reader who leaves early has not read everything.
  child.stdin?.on('error', () => {}).end(text)
  const [code]: (number | null)[] = await once(child, 'close')
  return code !== NOT_FOUND
}
