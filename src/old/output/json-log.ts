import { inspect } from 'node:util'
import type { Log } from '../../base/log.js'
import { printable } from '../../base/printable.js'
import type { TextStream } from '../context.js'
import { jsonLine } from './json-line.js'

type Fields = Readonly<Record<string, unknown>>

/** A log for programs: each message is one JSON object on a line of standard error. */
export interface JsonLog extends Log {
  /** A message with what it is about; a `time` of its own is left out. */
  event(level: keyof Log, message: string, fields: Fields): void
  error(message: string, cause?: unknown, fields?: Fields): void
}

export interface JsonLogOptions {
  /** Without info and debug messages. */
  readonly quiet?: boolean | undefined
  /** With debug messages. */
  readonly verbose?: boolean | undefined
  /** Whether an error's cause is printed, with its stack. */
  readonly debug: boolean
}

export function createJsonLog(
  stream: Pick<TextStream, 'write'>,
  { quiet, verbose, debug }: JsonLogOptions,
): JsonLog {
  const event: JsonLog['event'] = (level, message, fields) => {
    if (quiet && level === 'info') return
    const { time: _, ...about } = fields
    const time = new Date().toISOString()
    stream.write(jsonLine({ time, level, message: printable(message), ...about }))
  }
  return {
    event,
    debug: (message) => {
      if (verbose && !quiet) event('debug', message, {})
    },
    info: (message) => event('info', message, {}),
    warn: (message) => event('warn', message, {}),
    error: (message, cause, fields = {}) =>
      event('error', message, { ...fields, ...(debug && cause !== undefined && { cause: inspect(cause) }) }),
  }
}
