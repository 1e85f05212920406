import { inspect } from 'node:util'
import { Chalk } from 'chalk'
import type { Log } from '../../base/log.js'
import { printableJson, printableText } from '../../base/printable.js'
import type { Context, TextStream } from '../context.js'
import { dim, type Line, type Painter, red, render, yellow } from './line.js'

export type ColorMode = 'auto' | 'always' | 'never'

export interface OutputOptions {
  readonly color?: ColorMode
  readonly quiet?: boolean
  readonly verbose?: boolean
}

/**
 * Results on stdout, messages on stderr. Every method escapes what could rewrite a terminal's display, since text may come
 * from outside. Only `exactly` writes raw bytes, and only where stdout is no terminal.
 */
export interface Output {
  /** A line of a result. */
  result(line: Line): void
  /** A result byte for byte, with nothing added. On a terminal it is escaped, except line feeds and tabs. */
  exactly(bytes: string | Uint8Array): void
  /** A result for a program: one JSON object on a line, marked `"v":1`. */
  object(value: object): void
  /** A line of a message; silent under `--quiet`. */
  say(line: Line): void
  /** Whether `say` is silent, so that callers can skip the work for it. */
  readonly quiet: boolean
  readonly log: Log
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
  const message = (line: Line): void => void stderr.write(`${render(line, messagePainter)}\n`)
  const logParts = { message, options, debug: Boolean(env['RELAY_DEBUG']) }
  return {
    result: (line) => void stdout.write(`${render(line, resultPainter)}\n`),
    exactly: (bytes) =>
      void stdout.write(stdout.isTTY === true ? printableText(Buffer.from(bytes).toString()) : bytes),
    object: (value) => void stdout.write(jsonLine(value)),
    say: (line) => options.quiet || message(line),
    quiet: options.quiet === true,
    log: createLog({ ...logParts, start: () => '' }),
    timedLog: createLog({ ...logParts, start: () => [dim(timeOfDay(Date.now())), '  '] }),
  }
}

interface LogParts {
  readonly message: (line: Line) => void
  readonly options: OutputOptions
  /** Whether an error's cause is printed with its stack. */
  readonly debug: boolean
  /** What each line starts with. */
  readonly start: () => Line
}

function createLog({ message, options: { quiet, verbose }, debug, start }: LogParts): Log {
  return {
    debug: (text) => {
      if (verbose && !quiet) message([start(), dim(text)])
    },
    info: (text) => quiet || message([start(), text]),
    warn: (text) => message([start(), yellow('warning:'), ' ', text]),
    error: (text, cause) => {
      message([start(), red('error:'), ' ', text])
      if (debug && cause !== undefined) for (const line of inspect(cause).split('\n')) message(line)
    },
  }
}

/** `12:04:11`, in the time zone of this machine. */
export function timeOfDay(at: number): string {
  return new Date(at).toTimeString().slice(0, 8)
}

/** The object on one line, marked `"v":1`; what could rewrite a terminal's display is escaped, which is the same JSON. */
export function jsonLine(value: object): string {
  return `${printableJson(JSON.stringify({ v: 1, ...value }))}\n`
}

/** `--color` decides, then NO_COLOR and FORCE_COLOR when not empty, then whether the stream is a terminal. */
function wantsColor(stream: TextStream, env: Context['env'], mode: ColorMode = 'auto'): boolean {
  if (mode !== 'auto') return mode === 'always'
  if (env['NO_COLOR']) return false
  if (env['FORCE_COLOR']) return env['FORCE_COLOR'] !== '0'
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}
