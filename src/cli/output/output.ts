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
  /** Without info and debug messages. */
  readonly quiet?: boolean | undefined
  /** With debug messages. */
  readonly verbose?: boolean | undefined
  /** Whether a failure is an object. */
  readonly json?: boolean | undefined
  /** Whether messages are JSON. */
  readonly jsonLog?: boolean | undefined
}

/** Where a command writes what it says besides its result: on standard error, or in the notes for an agent. */
export interface CommandMessages {
  /** Whether results are for a person: standard output is a terminal. */
  readonly isTerminal: boolean
  /** Whether `say` is silent, so that callers can skip the work for it. */
  readonly quiet: boolean
  readonly log: Log
  /** A line of a message, broken like a result; silent under `--quiet`. */
  say(line: Line, indent?: number): void
  warn(line: Line): void
  /** A count of long work, such as `120/10000`, on a terminal. The next count replaces it, any other output and undefined remove it. */
  count(text?: string): void
  /** A warning for a person and, as further members of every result from now on, for a program. */
  remark(text: string, members: MarkedObject): void
}

/** Under the text of a line that begins with the time of day. */
export const TIMED_INDENT = 10

/** What a line of the log begins with. */
const LABELS: Readonly<Record<keyof Log, Line>> = {
  debug: '',
  info: '',
  warn: t`${yellow('warning:')} `,
  error: t`${red('error:')} `,
}

/** A stream, and whether it shows styles. */
interface Pen {
  readonly stream: TextStream
  readonly color: boolean
}

/**
 * Results on stdout, messages on stderr. Every method escapes what could rewrite a terminal's display, since text may come
 * from outside. Only `exactly` writes raw bytes, and only where stdout is no terminal.
 */
export class Output implements CommandMessages {
  readonly isTerminal: boolean
  readonly quiet: boolean
  /** Whether messages are JSON: each one object on a line of standard error. */
  readonly jsonLog: boolean
  readonly log: Log
  /** The same log with the time of day before each line, for a service. */
  readonly timedLog: Log
  readonly #context: Pick<Context, 'stdout' | 'stderr' | 'env'>
  readonly #options: OutputOptions
  readonly #results: Pen
  readonly #messages: Pen
  #remarks: Fields = {}
  /** A counter stands on the last line of the terminal. */
  #isCounting = false

  constructor(context: Pick<Context, 'stdout' | 'stderr' | 'env'>, options: OutputOptions = {}) {
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

  /** The same output, with messages as JSON or as text: a settings file can say so, too. */
  withLogFormat(format: 'text' | 'json' = 'text'): Output {
    return new Output(this.#context, { ...this.#options, jsonLog: format === 'json' })
  }

  /** The columns of a line of a result; no limit where it is no terminal. */
  get width(): number {
    return columnsOf(this.#results.stream)
  }

  /** The same of a message. */
  get messageWidth(): number {
    return columnsOf(this.#messages.stream)
  }

  /** A line of a result. On a terminal it is broken at spaces, with the further lines indented by so many columns. */
  result(line: Line, indent?: number): void {
    this.#print(this.#results, line, indent)
  }

  /** Rows of a result, in columns. */
  table(rows: readonly (readonly Line[])[]): void {
    for (const line of table(rows)) this.result(line)
  }

  /** The lines of a long result; on a terminal that is too small for them in a pager. */
  async pages(lines: readonly Line[]): Promise<void> {
    const { stdout, env } = this.#context
    const { width } = this
    const broken = lines.flatMap((line) => textOf(line).wrap(width))
    const height = broken.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.width / width)), 0)
    const text = rendered(this.#results, broken)
    const isLong = this.isTerminal && stdout.rows !== undefined && height >= stdout.rows
    if (!isLong || !(await showInPager(text, env))) this.#write(this.#results, text)
  }

  /** A result byte for byte, with nothing added. On a terminal it is escaped, except line feeds and tabs. */
  exactly(bytes: string | Uint8Array): void {
    this.#write(this.#results, this.isTerminal ? printableText(Buffer.from(bytes).toString()) : bytes)
  }

  /** A result for a program: one JSON object on a line, marked `"v":1`. */
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
   * What happens in a service, under the time of day; where messages are JSON, with the fields of the object. Under `--quiet` only what is
   * needed.
   */
  event(level: 'info' | 'warn', line: Line, object: Fields, isNeeded = level === 'warn'): void {
    if (this.quiet && !isNeeded) return
    if (this.jsonLog) this.#message(level, line, object)
    else this.#print(this.#messages, timed(line), TIMED_INDENT)
  }

  count(text = ''): void {
    const { stream } = this.#messages
    if (stream.isTTY !== true || this.quiet || this.jsonLog) return
    this.#write(this.#messages, String(textOf(text).cut(this.messageWidth - 1)))
    this.#isCounting = text !== ''
  }

  /** A failure that ends the command, as an object where programs read it. */
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

  /** A message as JSON, with what it is about; a time of its own is left out. */
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

  /** An error's cause with its stack, where the user asks for it. */
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

/** Shows text in the pager that PAGER names, `less` by default, until the reader leaves it. False when there is none. */
async function showInPager(text: string, env: Context['env']): Promise<boolean> {
  const pager = env['PAGER'] ?? 'less'
  // Windows has no such shell.
  if (pager === '' || pager === 'cat' || process.platform === 'win32') return false
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
