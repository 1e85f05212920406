import { inspect } from 'node:util'
import type { Log } from '../../src/base/log.js'

/** A log that records warnings and errors. */
export function recordingLog(): { log: Log; lines: string[] } {
  const lines: string[] = []
  const log: Log = {
    debug: () => {},
    info: () => {},
    warn: (message) => lines.push(`warn ${message}`),
    error: (message, cause) => lines.push(`error ${message}: ${String(cause)}`),
  }
  return { log, lines }
}

/** A log that remembers every line, and the causes of errors. */
export class RecordingLog implements Log {
  readonly lines: string[] = []
  readonly #causes: unknown[] = []

  debug(message: string): void {
    this.lines.push(`debug ${message}`)
  }

  info(message: string): void {
    this.lines.push(`info ${message}`)
  }

  warn(message: string): void {
    this.lines.push(`warn ${message}`)
  }

  error(message: string, cause?: unknown): void {
    this.lines.push(`error ${message}`)
    this.#causes.push(cause)
  }

  /** Everything that a log could print. */
  text(): string {
    return [
      ...this.lines,
      ...this.#causes.map((cause) => inspect(cause, { depth: 10, showHidden: true })),
    ].join('\n')
  }
}
