/**
 * Where relay says what happens, for people. Nothing below `cli/` prints: it is given one of these.
 * Messages are one line, and never hold a token, a secret or a body.
 */
export interface Log {
  debug(message: string): void
  info(message: string): void
  warn(message: string): void
  /** `cause` is for the developer of relay: its stack is shown under RELAY_DEBUG only. */
  error(message: string, cause?: unknown): void
}

const nothing = (): void => {}

/** A log that says nothing. */
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing }
