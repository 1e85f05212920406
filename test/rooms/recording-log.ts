import { inspect } from 'node:util'
import type { Log } from '../../src/base/log.js'

/** A log that remembers every line, and the causes of errors. */
export class RecordingLog implements Log {
  readonly lines: string[] = []
  readonly causes: unknown[] = []

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
    this.causes.push(cause)
  }

  /** Everything that a log could print. */
  text(): string {
    return [...this.lines, ...this.causes.map((each) => inspect(each, { depth: 10, showHidden: true }))].join(
      '\n',
    )
  }
}
