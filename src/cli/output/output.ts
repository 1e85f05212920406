import { once } from 'node:events'
import { inspect } from 'node:util'
import type { RelayError } from '../../base/errors.js'
import type { Log } from '../../base/log.js'
import { printableJson, printableText } from '../../base/text.js'
import type { Context, TextStream } from '../context.js'
import type { MarkedObject } from './outside.js'
import { dim, type Line, red, t, table, type Text, textOf, yellow } from './text.js'
import { timeOfDay } from './time.js'

export type ColorMode = 'auto' | 'always' | 'never'
type Fields = Readonly<Record<string, unknown>>

export interface OutputOptions {
  readonly color?: ColorMode | undefined
  /** Hides info and debug messages. */
  readonly quiet?: boolean | undefined
  /** Shows debug messages. */
  readonly verbose?: boolean | undefined
  /** Prints a failure as an object. */
  readonly json?: boolean | undefined
  /** Prints messages as JSON. */
  readonly jsonLog?: boolean | undefined
}

/** Messages of a command besides its result: on standard error, or as notes for an agent. */
export interface CommandMessages {
  /** True if results are for a person: standard output is a terminal. */
  readonly isTerminal: boolean
  /** True if `say` prints nothing, so that callers can skip the work for it. */
  readonly quiet: boolean
  readonly log: Log
  /** Prints a line of a message, wrapped like a result. Prints nothing with `--quiet`. */
  say(line: Line, indent?: number): void
  warn(line: Line): void
  /**
   * Shows a count of long work, such as `120/10000`, on a terminal. The next count replaces it; other output and
   * undefined remove it.
   */
  count(text?: string): void
  /** Prints a warning for a person, and adds `members` to every later result for a program. */
  remark(text: string, members: MarkedObject): void
}

/** Indentation of text under a line that begins with the time of day. Columns. */
export const TIMED_INDENT = 10

/** Beginnings of the log's lines. */
const LABELS: Readonly<Record<keyof Log, Line>> = {
  debug: '',
  info: '',
  warn: t`${yellow('warning:')} `,
  error: t`${red('error:')} `,
}

/** A stream, with or without styles. */
interface Pen {
  readonly stream: TextStream
  readonly color: boolean
}

/**
 * Results on stdout, messages on stderr. Every method escapes what could rewrite a terminal's display, since text may
 * come from outside. Only `exactly` writes raw bytes, and only if stdout is no terminal.
 */
export class Output implements CommandMessages {
  readonly isTerminal: boolean
  readonly quiet: boolean
  /** True if messages are JSON: each is one object on a line of standard error. */
  readonly jsonLog: boolean
  readonly log: Log
  /** The log with the time of day before each line, for a service. */
  readonly timedLog: Log
  readonly #context: Context
  readonly #options: OutputOptions
  readonly #results: Pen
  readonly #messages: Pen
  #remarks: Fields = {}
  /** True while a count is on the last line of the terminal. */
  #isCounting = false

  constructor(context: Context, options: OutputOptions = {}) {
    const { stdout, stderr, env } = context
    const { color, quiet, jsonLog } = options
    this.#context = context
    this.#options = options
    this.#results = { stream: stdout, color: wantsColor(stdout, env, color) }
    this.#messages = { stream: stderr, color: wantsColor(stderr, env, color) }
    this.isTerminal = stdout.isTTY === true
    this.quiet = quiet === true
    this.jsonLog = jsonLog === true
    this.log = this.#createLog(false)
    this.timedLog = this.#createLog(true)
  }

  /** Returns this output with messages as JSON or as text, since a settings file can choose that, too. */
  withLogFormat(format: 'text' | 'json' = 'text'): Output {
    return new Output(this.#context, { ...this.#options, jsonLog: format === 'json' })
  }

  /** Width of a result's line in columns. No limit without a terminal. */
  get width(): number {
    return columnsOf(this.#results.stream)
  }

  /** Width of a message's line in columns. */
  get messageWidth(): number {
    return columnsOf(this.#messages.stream)
  }

  /**
   * Prints a line of a result. On a terminal it is wrapped at spaces, with `indent` columns before the further lines.
   */
  result(line: Line, indent?: number): void {
    this.#print(this.#results, line, indent)
  }

  /** Prints rows of a result, in columns. */
  table(rows: readonly (readonly Line[])[]): void {
    for (const line of table(rows)) this.result(line)
  }

  /** Prints the lines of a long result, in a pager if the terminal is too small. */
  async pages(lines: readonly Line[]): Promise<void> {
    const { stdout, env } = this.#context
    const { width } = this
    const broken = lines.flatMap((line) => textOf(line).wrap(width))
    const height = broken.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.width / width)), 0)
    const text = rendered(this.#results, broken)
    const isLong = this.isTerminal && stdout.rows !== undefined && height >= stdout.rows
    if (!isLong || !(await showInPager(text, env))) this.#write(this.#results, text)
  }

  /** Prints a result byte for byte, with nothing added. On a terminal it is escaped, except line feeds and tabs. */
  exactly(bytes: string | Uint8Array): void {
    this.#write(this.#results, this.isTerminal ? printableText(Buffer.from(bytes).toString()) : bytes)
  }

  /** Prints a result for a program: one JSON object on a line, marked `"v":1`. */
  object(value: object): void {
    this.#write(this.#results, jsonLine({ ...value, ...this.#remarks }))
  }

  remark(text: string, members: MarkedObject): void {
    this.log.warn(text)
    this.#remarks = { ...this.#remarks, ...members }
  }

  say(line: Line, indent?: number): void {
    if (this.quiet) return
    if (this.jsonLog) this.#message('info', line)
    else this.#print(this.#messages, line, indent)
  }

  warn(line: Line): void {
    this.log.warn(String(line))
  }

  /**
   * Prints an event of a service, after the time of day; with JSON messages, with the fields of the object. With
   * `--quiet` only if it is needed.
   */
  event(level: 'info' | 'warn', line: Line, object: () => Fields, isNeeded = level === 'warn'): void {
    if (this.quiet && !isNeeded) return
    if (this.jsonLog) this.#message(level, line, object())
    else this.#print(this.#messages, timed(line), TIMED_INDENT)
  }

  count(text = ''): void {
    const { stream } = this.#messages
    if (stream.isTTY !== true || this.quiet || this.jsonLog) return
    this.#write(this.#messages, String(textOf(text).cut(this.messageWidth - 1)))
    this.#isCounting = text !== ''
  }

  /** Prints a failure that ends the command, as an object if programs read it. */
  failure(error: RelayError): void {
    const { message, kind, cause = error } = error
    const object = { type: 'error', code: kind, error: message, ...this.#remarks }
    if (this.jsonLog) this.#message('error', message, { ...object, ...this.#causeField(cause) })
    else if (this.#options.json) this.#write(this.#messages, jsonLine(object))
    else this.log.error(message, cause)
  }

  #createLog(isTimed: boolean): Log {
    const write = (level: keyof Log, text: string, cause?: unknown): void => {
      const isMinor = level === 'debug' || level === 'info'
      if ((isMinor && this.quiet) || (level === 'debug' && !this.#options.verbose)) return
      if (this.jsonLog) return this.#message(level, text, this.#causeField(cause))
      const line = t`${LABELS[level]}${level === 'debug' ? dim(text) : text}`
      if (isTimed) this.#print(this.#messages, timed(line), TIMED_INDENT)
      else this.#print(this.#messages, line)
      for (const detail of this.#causeField(cause).cause?.split('\n') ?? [])
        this.#print(this.#messages, detail)
    }
    return {
      debug: (text) => write('debug', text),
      info: (text) => write('info', text),
      warn: (text) => write('warn', text),
      error: (text, cause) => write('error', text, cause),
    }
  }

  /** Prints a message as JSON with its fields, except a time of its own. */
  #message(level: keyof Log, line: Line, fields: Fields = {}): void {
    const { time: _, ...about } = fields
    const time = new Date().toISOString()
    this.#write(this.#messages, jsonLine({ time, level, message: String(textOf(line)), ...about }))
  }

  #print(pen: Pen, line: Line, indent?: number): void {
    this.#write(pen, rendered(pen, textOf(line).wrap(columnsOf(pen.stream), indent)))
  }

  #write({ stream }: Pen, text: string | Uint8Array): void {
    if (this.#isCounting) this.#context.stderr.write('\r\u001b[K')
    this.#isCounting = false
    if (text.length > 0) stream.write(text)
  }

  /** Returns an error's cause with its stack, if the user asks for it. */
  #causeField(cause: unknown): { readonly cause?: string } {
    const isShown = this.#context.env['RELAY_DEBUG'] && cause !== undefined
    return isShown ? { cause: inspect(cause) } : {}
  }
}

function timed(line: Line): Text {
  return t`${dim(timeOfDay(Date.now()))}  ${line}`
}

function rendered({ color }: Pen, lines: readonly Text[]): string {
  return lines.map((line) => `${line.render(color)}\n`).join('')
}

/**
 * Formats an object on one line, marked `"v":1`. Characters that could rewrite a terminal's display are escaped, which
 * is equal JSON.
 */
function jsonLine(value: object): string {
  return `${printableJson(JSON.stringify({ v: 1, ...value }))}\n`
}

/** Returns a terminal's columns. Without a terminal lines are not wrapped. */
function columnsOf({ isTTY, columns }: TextStream): number {
  return isTTY === true && columns ? columns : Infinity
}

/** Decides about styles: by `--color`, then NO_COLOR and FORCE_COLOR if not empty, then by the stream. */
function wantsColor(stream: TextStream, env: Context['env'], mode: ColorMode = 'auto'): boolean {
  if (mode !== 'auto') return mode === 'always'
  if (env['NO_COLOR']) return false
  if (env['FORCE_COLOR']) return env['FORCE_COLOR'] !== '0'
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}

/** Exit code of a shell for a missing program. */
const NOT_FOUND = 127

/** Shows text in the pager of PAGER, `less` by default, until the reader leaves it. False if there is none. */
async function showInPager(text: string, env: Context['env']): Promise<boolean> {
  const pager = env['PAGER'] ?? 'less'
  // Windows has no such shell.
  if (pager === '' || pager === 'cat' || process.platform === 'win32') return false
  const { spawn } = await import('node:child_process')
  const child = spawn('/bin/sh', ['-c', pager], {
    stdio: ['pipe', 1, 2],
    // As git does: F leaves at once if the text fits on the screen, R shows colours, X leaves the text there
    // afterwards.
    env: { LESS: 'FRX', ...env },
  })
  // A reader who leaves early has not read everything.
  child.stdin?.on('error', () => {}).end(text)
  const [code]: (number | null)[] = await once(child, 'close')
  return code !== NOT_FOUND
}
