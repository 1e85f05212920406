import { inspect } from 'node:util'
import { Chalk } from 'chalk'
import type { Log } from '../../base/log.js'
import { printableText } from '../../base/printable.js'
import type { Context, TextStream } from '../context.js'
import { Feed } from './feed.js'
import { createJsonLog, type JsonLog } from './json-log.js'
import { jsonLine } from './json-line.js'
import { dim, type Line, lineText, type Painter, red, render, wrapLine, yellow } from './line.js'
import { showInPager } from './pager.js'
import { timeOfDay } from './time.js'

export type ColorMode = 'auto' | 'always' | 'never'

export interface OutputOptions {
  readonly color?: ColorMode
  readonly quiet?: boolean
  readonly verbose?: boolean
  /** Whether messages are JSON. Default: false. */
  readonly jsonLog?: boolean
}

/**
 * Results on stdout, messages on stderr. Every method escapes what could rewrite a terminal's display, since text may come
 * from outside. Only `exactly` writes raw bytes, and only where stdout is no terminal.
 */
export interface Output {
  /** A line of a result. On a terminal it is broken at spaces, with the further lines indented by so many columns. */
  result(line: Line, indent?: number): void
  /** The lines of a long result; on a terminal that is too small for them in a pager. */
  pages(lines: readonly Line[]): Promise<void>
  /** A result byte for byte, with nothing added. On a terminal it is escaped, except line feeds and tabs. */
  exactly(bytes: string | Uint8Array): void
  /** A result for a program: one JSON object on a line, marked `"v":1`. */
  object(value: object): void
  /** A line of a message, broken like a result; silent under `--quiet`. */
  say(line: Line, indent?: number): void
  /** Whether results are for a person: standard output is a terminal. */
  readonly isTerminal: boolean
  /** The columns of a line of a result; no limit where it is no terminal. */
  readonly width: number
  /** The same of a message. */
  readonly messageWidth: number
  /**
   * The lines of standard error; the last can change; messages are added to them until it is disposed of. Undefined where
   * lines must not change: no terminal, no styles on it, or messages are JSON.
   */
  openFeed(): Feed | undefined
  /** Whether `say` is silent, so that callers can skip the work for it. */
  readonly quiet: boolean
  readonly log: Log
  /** The log where messages are JSON; undefined where they are text. */
  readonly jsonLog: JsonLog | undefined
  /** The same log with the time of day before each line, for a service. */
  readonly timedLog: Log
}

export function createOutput(
  { stdout, stderr, env }: Pick<Context, 'stdout' | 'stderr' | 'env'>,
  options: OutputOptions = {},
): Output {
  const painter = (stream: TextStream): Painter =>
    new Chalk({ level: wantsColor(stream, env, options.color) ? 1 : 0 })
  const resultPainter = painter(stdout)
  const messagePainter = painter(stderr)
  const { quiet, verbose } = options
  const debug = Boolean(env['RELAY_DEBUG'])
  const jsonLog = options.jsonLog ? createJsonLog(stderr, { quiet, verbose, debug }) : undefined
  let feed: Feed | undefined
  const message = (line: Line, indent?: number): void => {
    if (jsonLog) return jsonLog.info(lineText(line))
    const lines = (width: number): readonly Line[] => wrapLine(line, width, indent)
    if (feed) return void feed.add(lines, true)
    for (const each of lines(widthOf(stderr))) stderr.write(`${render(each, messagePainter)}\n`)
  }
  const logParts = { message, options, debug }
  const resultText = (line: Line, indent?: number): string =>
    wrapLine(line, widthOf(stdout), indent)
      .map((each) => `${render(each, resultPainter)}\n`)
      .join('')
  return {
    result: (line, indent) => void stdout.write(resultText(line, indent)),
    async pages(lines) {
      const texts = lines.map((line) => resultText(line))
      const rows = texts.reduce((sum, text) => sum + text.split('\n').length - 1, 0)
      const isLong = stdout.isTTY === true && stdout.rows !== undefined && rows >= stdout.rows
      if (isLong && (await showInPager(texts.join(''), env))) return
      for (const text of texts) stdout.write(text)
    },
    exactly: (bytes) =>
      void stdout.write(stdout.isTTY === true ? printableText(Buffer.from(bytes).toString()) : bytes),
    object: (value) => void stdout.write(jsonLine(value)),
    say: (line, indent) => options.quiet || message(line, indent),
    isTerminal: stdout.isTTY === true,
    get width() {
      return widthOf(stdout)
    },
    get messageWidth() {
      return widthOf(stderr)
    },
    openFeed() {
      if (jsonLog || stderr.isTTY !== true || !wantsColor(stderr, env, options.color)) return undefined
      const paint = (line: Line): string => render(line, messagePainter)
      return (feed = new Feed(stderr, paint, () => (feed = undefined)))
    },
    quiet: quiet === true,
    jsonLog,
    log: jsonLog ?? createLog({ ...logParts, start: () => '' }),
    timedLog:
      jsonLog ??
      createLog({
        ...logParts,
        start: () => [dim(timeOfDay(Date.now())), '  '],
        indent: TIMED_INDENT,
      }),
  }
}

/** Under the text of a line that begins with the time of day. */
export const TIMED_INDENT = 10

/** A terminal's columns; elsewhere lines are not broken. */
function widthOf({ isTTY, columns }: TextStream): number {
  return isTTY === true && columns ? columns : Infinity
}

interface LogParts {
  readonly message: (line: Line, indent?: number) => void
  readonly options: OutputOptions
  /** Whether an error's cause is printed with its stack. */
  readonly debug: boolean
  /** What each line starts with. */
  readonly start: () => Line
  /** Indentation of a line's rest. */
  readonly indent?: number
}

function createLog({ message, options: { quiet, verbose }, debug, start, indent }: LogParts): Log {
  return {
    debug: (text) => {
      if (verbose && !quiet) message([start(), dim(text)], indent)
    },
    info: (text) => quiet || message([start(), text], indent),
    warn: (text) => message([start(), yellow('warning:'), ' ', text], indent),
    error: (text, cause) => {
      message([start(), red('error:'), ' ', text], indent)
      if (debug && cause !== undefined) for (const line of inspect(cause).split('\n')) message(line)
    },
  }
}

/** `--color` decides, then NO_COLOR and FORCE_COLOR when not empty, then whether the stream is a terminal. */
function wantsColor(stream: TextStream, env: Context['env'], mode: ColorMode = 'auto'): boolean {
  if (mode !== 'auto') return mode === 'always'
  if (env['NO_COLOR']) return false
  if (env['FORCE_COLOR']) return env['FORCE_COLOR'] !== '0'
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}
