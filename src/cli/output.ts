import { inspect } from 'node:util'
import { Chalk } from 'chalk'
import type { Log } from '../base/log.js'
import type { Context, TextStream } from './context.js'

/** Paints text, or leaves it as it is; see chalk. */
export type Paint = Readonly<Record<'bold' | 'dim' | 'green' | 'red' | 'yellow', (text: string) => string>>

const asItIs = (text: string): string => text
const PLAIN: Paint = { bold: asItIs, dim: asItIs, green: asItIs, red: asItIs, yellow: asItIs }

export type ColorMode = 'auto' | 'always' | 'never'

export interface OutputOptions {
  readonly color: ColorMode
  readonly quiet: boolean
  readonly verbose: boolean
}

/** Results on stdout, everything said to people on stderr. */
export interface Output {
  /** A result for a person or a pipe. */
  result(line: string): void
  /** A result to the byte, with nothing added. */
  exactly(bytes: string | Uint8Array): void
  /** A result for a program: one JSON object on a line, marked `"v":1`. */
  object(value: Readonly<Record<string, unknown>>): void
  /** Said to people; silent under `--quiet`. */
  say(text: string): void
  /** Whether nothing is said, so that what is said often need not be put together. */
  readonly quiet: boolean
  readonly log: Log
  /** Paints what goes to stderr. */
  readonly paint: Paint
  /** Paints what goes to stdout. */
  readonly resultPaint: Paint
}

export function createOutput(context: Context, options: OutputOptions): Output {
  const { stdout, stderr, env } = context
  const painter = (stream: TextStream): Paint =>
    wantsColor(stream, env, options.color) ? new Chalk({ level: 1 }) : PLAIN
  const paint = painter(stderr)
  const line = (text: string): void => void stderr.write(`${text}\n`)
  const say = (text: string): void => {
    if (!options.quiet) line(text)
  }
  return {
    result: (text) => void stdout.write(`${text}\n`),
    exactly: (bytes) => void stdout.write(bytes),
    object: (value) => void stdout.write(jsonLine(value)),
    say,
    quiet: options.quiet,
    paint,
    resultPaint: painter(stdout),
    log: {
      debug: (message) => {
        if (options.verbose) say(paint.dim(printable(message)))
      },
      info: (message) => say(printable(message)),
      warn: (message) => line(`${paint.yellow('warning:')} ${printable(message)}`),
      error: (message, cause) => {
        line(`${paint.red('error:')} ${printable(message)}`)
        if (env['RELAY_DEBUG'] && cause !== undefined) line(inspect(cause))
      },
    },
  }
}

/** The object on one line, marked `"v":1`; what could rewrite a terminal's display is escaped, which is the same JSON. */
export function jsonLine(value: Readonly<Record<string, unknown>>): string {
  const json = JSON.stringify({ v: 1, ...value })
  return `${json.replaceAll(REWRITING, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`
}

/** Controls, line ends, text direction: all below U+10000. */
const REWRITING = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/** Shows characters that could rewrite what a terminal displays (controls, line ends, text direction) as `\u{…}`. */
export function printable(text: string): string {
  return text.replaceAll(REWRITING, (char) => `\\u{${char.charCodeAt(0).toString(16)}}`)
}

/** `--color` wins, then NO_COLOR and FORCE_COLOR when not empty, then whether a person is looking. */
function wantsColor(stream: TextStream, env: Context['env'], mode: ColorMode): boolean {
  if (mode !== 'auto') return mode === 'always'
  if (env['NO_COLOR']) return false
  if (env['FORCE_COLOR']) return env['FORCE_COLOR'] !== '0'
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}
